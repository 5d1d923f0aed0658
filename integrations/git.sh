# Let git start no program, reach no network, and take no folder of the branch for a repository. No file comes before
# these settings. Steps of action.yml source this; jobs for GitLab hold a copy.
unset GIT_DIR $(env | sed -n 's/^\(GIT_[A-Z0-9_]*\)=.*/\1/p')
export GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=0
# Whoever checked out the branch may be another user than the one who runs git: hence `safe.directory`.
for setting in 'safe.directory=*' safe.bareRepository=explicit protocol.allow=never core.askPass= \
  core.fsmonitor= core.hooksPath=/dev/null core.pager=cat core.sshCommand=false credential.helper= diff.external=; do
  export "GIT_CONFIG_KEY_$GIT_CONFIG_COUNT=${setting%%=*}" "GIT_CONFIG_VALUE_$GIT_CONFIG_COUNT=${setting#*=}"
  GIT_CONFIG_COUNT=$((GIT_CONFIG_COUNT + 1))
done
