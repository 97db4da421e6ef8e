# Completion of redlock for bash. The commands, flags and values are those that redlock itself lists.
_redlock() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} values i
  COMPREPLY=()
  # --wake=push is three words to bash
  if [ "$current" = = ]; then current=; elif [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
  if [ "$COMP_CWORD" -eq 1 ] || [[ $COMP_CWORD -eq 2 && $command == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(redlock --help | sed -n 's/^  redlock \([a-z]*\).*/\1/p')" -- "$current")
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [ "${COMP_WORDS[i]}" = -- ]; then # CMD of run, with completion of its own
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi
      return
    fi
  done
  case $previous in
    --config | --*-file | --*-path) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    --*) values=$(redlock "$command" --help-all 2>/dev/null | sed -n "s/^ *$previous=\([a-z]*|[a-z|]*\).*/\1/p")
      mapfile -t COMPREPLY < <(compgen -W "${values//|/ }" -- "$current") ;;&
    *) if [[ $current == -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$(redlock "$command" --help-all 2>/dev/null | grep -Eo -- '--[a-z-]+' | sort -u)" -- "$current")
    fi ;;
  esac
}
complete -o default -F _redlock redlock
