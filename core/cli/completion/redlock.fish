# Completion of redlock for fish. The commands and flags are those that redlock itself lists.
function __redlock_commands
    redlock --help | string replace -rf '^  redlock ([a-z]+).*' '$1'
end

function __redlock_flags
    set -l words (commandline -opc)
    redlock $words[2] --help-all 2>/dev/null | string match -ar -- '--[a-z-]+'
end

function __redlock_is_first
    test (count (commandline -opc)) -eq 1
end

function __redlock_is_after_dashes
    contains -- -- (commandline -opc)
end

complete -c redlock -f
complete -c redlock -n __redlock_is_first -a '(__redlock_commands)'
complete -c redlock -n 'not __redlock_is_first; and not __redlock_is_after_dashes' -a '(__redlock_flags)'
complete -c redlock -n __redlock_is_after_dashes -F -a '(__fish_complete_command)'
complete -c redlock -n 'not __redlock_is_first' -l guard -xa 'marker external off'
complete -c redlock -n 'not __redlock_is_first' -l wake -xa 'auto push poll'
complete -c redlock -n 'not __redlock_is_first' -l config -rF
for name in user-file password-file tls-ca-file tls-ca-path tls-cert-file tls-key-file
    complete -c redlock -n 'not __redlock_is_first' -l $name -rF
end
