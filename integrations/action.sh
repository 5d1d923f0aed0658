# What the steps of action.yml that start gpuplan or git begin with, for bash.
. "$GITHUB_ACTION_PATH/integrations/isolate.sh"
. "$GITHUB_ACTION_PATH/integrations/git.sh"
unset CDPATH

gpuplan() { "$RUNNER_TEMP/gpuplan/bin/python" -I -m gpuplan.cli "$@"; }

# Print the nearest folder upwards that has a repository's `.git`, a name that git checks out of no commit. Git itself takes a
# folder with HEAD, objects/ and refs/ for a repository, too, and a branch can hold that.
find_repository() {
  local folder=$1
  if [[ "$folder" != /* ]]; then folder="$PWD/$folder"; fi
  folder=$(cd -P "$folder" 2> /dev/null && pwd) || return 1
  until [[ -f "$folder/.git" || ( -e "$folder/.git/HEAD" && -d "$folder/.git/objects" && -d "$folder/.git/refs" ) ]]; do
    if [[ -z "$folder" ]]; then return 1; fi
    folder=${folder%/*}
  done
  echo "${folder:-/}"
}

# Run git in the repository of $DIRECTORY. Named so, git does not ask who owns it; the git that gpuplan starts does.
repository() {
  local top
  top=$(find_repository "$DIRECTORY") && git -C "$top" --git-dir=.git "$@"
}
