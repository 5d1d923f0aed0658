# Let no setting make git run a program, reach a network, or take a folder of the branch for a repository. From git
# 2.31 on no file comes before these. Steps of action.yml source this; jobs for GitLab hold a copy.
unset GIT_DIR $(env | sed -n 's/^\(GIT_[A-Z0-9_]*\)=.*/\1/p')
export GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_TRACE2=0 GIT_TRACE2_EVENT=0 GIT_TRACE2_PERF=0 GIT_CONFIG_COUNT=0
# Whoever checked out the branch may be another user than the one who runs git: hence `safe.directory`, which git
# takes from here since 2.38. From 2.30.3 to 2.37 only a file of the system or the user says it.
for setting in 'safe.directory=*' safe.bareRepository=explicit protocol.allow=never core.askPass= \
  core.fsmonitor= core.hooksPath=/dev/null core.pager=cat core.sshCommand=false credential.helper= diff.external=; do
  export "GIT_CONFIG_KEY_$GIT_CONFIG_COUNT=${setting%%=*}" "GIT_CONFIG_VALUE_$GIT_CONFIG_COUNT=${setting#*=}"
  GIT_CONFIG_COUNT=$((GIT_CONFIG_COUNT + 1))
done
