# SPDX-License-Identifier: Apache-2.0
# bash completion for ambit. Nothing is listed here: the program's own tables
# (ambit --list-options, --list-settings, --list-profiles) say what there is.

# Complete "$2" as an argument that help calls "$1".
_ambit_argument()
{
	case $1 in
	KEY=VALUE)
		compopt -o nospace
		mapfile -t COMPREPLY < <(compgen -S = -W "$("$program" --list-settings)" -- "$2")
		;;
	profile) # a name, or a file
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -W "$("$program" --list-profiles)" -- "$2")
		[[ $2 != */* ]] || mapfile -t COMPREPLY < <(compgen -f -- "$2")
		;;
	'NAME[=VALUE]' | PREFIX) mapfile -t COMPREPLY < <(compgen -e -- "$2") ;;
	FILE* | PATH | NAME | DIR)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
		;;
	*'|'*) mapfile -t COMPREPLY < <(compgen -W "${1//|/ }" -- "$2") ;;
	esac
}

# The command to run starts at word $1: completed as if ambit were not there.
_ambit_command()
{
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif [ "$1" -eq "$COMP_CWORD" ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	else
		_ambit_argument FILE "${COMP_WORDS[COMP_CWORD]}"
	fi
}

_ambit()
{
	local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
	local -A takes=()
	local commands='' options='' runs='' first='' words=0 pending='' program i word kind a b c d rest

	COMPREPLY=()
	program=$(type -P -- "${COMP_WORDS[0]/#\~/$HOME}") || return
	while IFS=$'\t' read -r kind a b c d rest; do
		if [ "$kind" = command ]; then
			commands+=" $a"
			[ "$a" = "$command" ] && first=${b#-}
		elif [[ ,$a, == *,"$command",* ]]; then
			options+=" $b"
			[ "$b" != --profile ] || d=profile
			takes[$b]=${d#-}
			[ "$c" = - ] || takes[$c]=${d#-}
		fi
	done < <("$program" --list-options)
	[ "$first" != command ] || runs=yes

	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands --version --help" -- "$cur")
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [ "$word" = = ]; then # --option=value comes as three words
			continue
		elif [ -n "$pending" ]; then
			pending=
		elif [ "$word" = -- ]; then
			runs=${runs:+$((i + 1))}
			break
		elif [[ $word == -* ]]; then
			pending=${takes[$word]}
		elif [ -n "$runs" ]; then
			runs=$i
			break
		else
			words=$((words + 1))
		fi
	done
	[ "$cur" != = ] || cur=
	if [ -n "$pending" ]; then
		_ambit_argument "$pending" "$cur"
	elif [ "$i" -lt "$COMP_CWORD" ] && [ -n "$runs" ]; then
		_ambit_command "$runs"
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [ -n "$runs" ]; then
		_ambit_command "$COMP_CWORD"
	elif [ "$command" = help ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
	elif [ -n "$first" ] && [ "$words" -eq 0 ]; then
		mapfile -t COMPREPLY < <(compgen -W "${first//|/ }" -- "$cur")
	else
		_ambit_argument FILE "$cur"
	fi
} && complete -F _ambit ambit
