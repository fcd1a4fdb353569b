"""The command line: parse, call, print. Whatever it does is three lines in a notebook.

`main` turns errors into lines and exit statuses, `app` names the commands, `flags` turns dataclasses into flags and
`options` holds those that commands share; then one module a command.
"""
