# Find commands in folders with whole names alone, and let no variable name folders of Python's modules: a relative
# name leads into the checked-out branch. Steps of action.yml source this; jobs for GitLab hold a copy.
folders=$PATH:
PATH=
while [ -n "$folders" ]; do
  case $folders in /*) PATH=${PATH:+$PATH:}${folders%%:*} ;; esac
  folders=${folders#*:}
done
unset PYTHONPATH $(env | sed -n 's/^\(PYTHON[A-Z0-9_]*\)=.*/\1/p')
