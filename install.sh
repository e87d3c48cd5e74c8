#!/bin/sh
# Makes the virtual environment with the locked versions of everything; `make install` calls it.
# On a bare Debian or Ubuntu the module venv is a package of its own: as root it is installed, else named.
set -eu
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}

if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "install: Python 3.11 or newer is needed; \"$PYTHON\" is not; set PYTHON=/path/to/python3.11" >&2
    exit 2
fi
if [ ! -x "$VENV/bin/python" ] || ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$VENV"
    if ! "$PYTHON" -m venv "$VENV" >/dev/null 2>&1; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            apt-get update -q && apt-get install -q -y python3-venv
            rm -rf "$VENV"
            "$PYTHON" -m venv "$VENV"
        else
            echo "install: Python lacks the module venv; run: sudo apt-get install python3-venv" >&2
            exit 2
        fi
    fi
fi
"$VENV/bin/python" -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
UV_PROJECT_ENVIRONMENT="$VENV" "$VENV/bin/uv" sync --locked --all-extras --inexact --quiet
