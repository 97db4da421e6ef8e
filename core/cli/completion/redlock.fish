# Completion of redlock for fish. The commands, flags and values are those that redlock itself lists.
function __redlock_commands
    redlock --help | string replace -rf '^  redlock ([a-z]+).*' '$1'
end

# What the flag in front of the cursor takes, as its help says it: a|b, DURATION, FILE; nothing if it takes none.
function __redlock_wanted
    set -l words (commandline -opc)
    string match -q -- '--*' $words[-1]
    and redlock $words[2] --help-all 2>/dev/null | string replace -rf -- "^ *$words[-1]=(\S+).*" '$1'
end

function __redlock_flags
    set -l words (commandline -opc)
    redlock $words[2] --help-all 2>/dev/null | string match -ar -- '--[a-z-]+'
end

function __redlock_is_first
    set -l words (commandline -opc)
    test (count $words) -eq 1; or test "$words[2..]" = help
end

function __redlock_is_after_dashes
    contains -- -- (commandline -opc)
end

function __redlock_wants_flag
    not __redlock_is_first; and not __redlock_is_after_dashes; and test -z (__redlock_wanted | string collect)
end

function __redlock_wants_value
    not __redlock_is_first; and not __redlock_is_after_dashes; and string match -q '*|*' -- (__redlock_wanted)
end

function __redlock_wants_file
    not __redlock_is_first; and not __redlock_is_after_dashes; and contains -- (__redlock_wanted) FILE FOLDER
end

complete -c redlock -f
complete -c redlock -n __redlock_is_first -a '(__redlock_commands)'
complete -c redlock -n __redlock_wants_flag -a '(__redlock_flags)'
complete -c redlock -n __redlock_wants_value -a "(__redlock_wanted | string split '|')"
complete -c redlock -n __redlock_wants_file -F
complete -c redlock -n __redlock_is_after_dashes -F -a '(__fish_complete_command)'
