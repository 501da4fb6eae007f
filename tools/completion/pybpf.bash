# SPDX-License-Identifier: Apache-2.0
# Completion of pybpf for bash. What can be completed is asked of the program: pybpf help --options.
# shellcheck shell=bash

# _pybpf_ask PROGRAM WHAT COMMAND [OPTION]: its commands, the options of a command, or what an option takes, as
# "KIND VALUES".
_pybpf_ask() {
	"$1" help --options 2>/dev/null | awk -F '\t' -v what="$2" -v command="$3" -v option="$4" '
		NR == 1 { next }
		what == "commands" && !$4 { print $1 }
		what == "options" && $1 == command && $4 { if ($3) print "-" $3; print "--" $4 }
		what == "value" && $1 == command && $6 && (option == "--" $4 || $3 && option == "-" $3) {
			gsub(/, /, " ", $7)
			print $6, $7
			exit
		}'
}

# What an option takes: words, or names of files, users or processes.
_pybpf_value() {
	case "$1" in
	FILE* | PATH* | DIR*)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		;;
	USER* | NAME\|UID*) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
	PID*) mapfile -t COMPREPLY < <(cd /proc && compgen -G "${cur}[0-9]*"; compgen -G "${cur:-0}") ;;
	*\ *) mapfile -t COMPREPLY < <(compgen -W "${1#* }" -- "$cur") ;;
	esac
}

_pybpf() {
	local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command=record value i
	COMPREPLY=()

	# COMP_WORDBREAKS makes three words of --mode=wall.
	if [ "$cur" = = ]; then
		cur=
	elif [ "$option" = = ]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if _pybpf_ask "$program" commands | grep -qxF -- "${COMP_WORDS[1]}" && [ "$COMP_CWORD" -gt 1 ]; then
		command=${COMP_WORDS[1]}
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			# A command, and then its arguments, which may be files.
			compopt -o default
			[ "$option" != -- ] || mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			return
		fi
	done
	value=$(_pybpf_ask "$program" value "$command" "$option")
	# The value of such an option is optional, and follows =.
	if [ -n "$value" ] && { [ "${value#\[}" = "$value" ] || [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ] ||
		[ "${COMP_WORDS[COMP_CWORD]}" = = ]; }; then
		_pybpf_value "$value"
	elif [ "${cur#-}" != "$cur" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_pybpf_ask "$program" options "$command")" -- "$cur")
	elif [ "$COMP_CWORD" -eq 1 ] || { [ "$command" = help ] && [ "$COMP_CWORD" -eq 2 ]; }; then
		mapfile -t COMPREPLY < <(compgen -W "$(_pybpf_ask "$program" commands)" -- "$cur")
	elif [ "$command" = report ] || [ "$command" = diff ]; then
		_pybpf_value FILE
	fi
}

complete -F _pybpf pybpf
