# SPDX-License-Identifier: Apache-2.0
# Completion of pybpf for fish. What can be completed is asked of the program: pybpf help --options.

# Whether the command line is of this command; record may be left out.
function __pybpf_is
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    if set -q words[2]; and contains -- $words[2] $__pybpf_commands
        test $words[2] = $argv[1]
    else
        test $argv[1] = record
    end
end

function __pybpf_has_no_command
    test (count (commandline -opc)) -eq 1
end

function __pybpf_load
    # Behind sudo it is the second word.
    set -l program (commandline -opc | string match -r '^(?:.*/)?pybpf$')[1]
    test -n "$program"; or set program pybpf
    set -g __pybpf_commands
    for line in ($program help --options 2>/dev/null)[2..]
        set -l field (string split \t -- $line)
        if test -z "$field[4]"
            set -a __pybpf_commands $field[1]
            complete -c pybpf -f -n __pybpf_has_no_command -a $field[1] -d $field[8]
            continue
        end
        set -l option -l $field[4] -d $field[8]
        test -n "$field[3]"; and set -a option -s $field[3]
        switch "$field[6]"
            case ''
                set -a option -f
            case '[=*'
                set -a option -f -a $field[7]
            case 'FILE*' 'PATH*' 'DIR*'
                set -a option -r -F
            case 'USER*' 'NAME|UID'
                set -a option -x -a '(__fish_complete_users)'
            case 'PID*'
                set -a option -x -a '(__fish_complete_pids)'
            case '*'
                # A line of its own, so that the option's text is not behind each of them.
                complete -c pybpf -n "__pybpf_is $field[1]" -x -l $field[4] $option[5..] -a (string replace -a , '' -- "$field[7]")
                set -a option -x
        end
        complete -c pybpf -n "__pybpf_is $field[1]" $option
    end
end

complete -c pybpf -f
__pybpf_load
complete -c pybpf -n '__pybpf_is help' -a '$__pybpf_commands'
complete -c pybpf -F -n '__pybpf_is report; or __pybpf_is diff'
complete -c pybpf -n 'contains -- -- (commandline -opc)' -a '(__fish_complete_subcommand --fcs-skip=(contains -i -- -- (commandline -opc)))'
