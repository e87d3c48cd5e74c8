"""The cluster's key file: one key a line, its id and its secret in hexadecimal digits.

::

    # id  secret
    2  9f2c…
    1  77ab…

The first key signs. The second, if there is one, is accepted too: a rotation adds the new key as the second
on all hosts, then makes it the first on all hosts, then removes the old one.
"""

from pathlib import Path

from ark.agent.text_file import exposed, read_text
from ark.control.wire import Key, Keys
from ark.errors import ConfigError, Fault, LocalProtocolError


def load_keys(path: Path) -> Keys:
    """The keys in a file.

    Raises
    ------
    ConfigError
        With all that is wrong with it; also if everybody on this machine may read it.
    """
    text = read_text(path, "a key file")
    faults = exposed(path)
    keys: list[Key] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            try:
                keys.append(_key(words))
            except ConfigError as error:
                faults.append(Fault(f"{path}:{number}", str(error)))
    if not faults and not 1 <= len(keys) <= 2:
        faults.append(Fault(str(path), f"has {len(keys)} keys; write one, or two during a rotation"))
    if faults:
        raise ConfigError(*faults)
    try:
        return Keys(*keys)
    except LocalProtocolError as error:
        raise ConfigError(Fault(str(path), str(error))) from None


def _key(words: list[str]) -> Key:
    """One line's key; nothing of a secret enters a message."""
    if len(words) != 2 or not (words[0].isascii() and words[0].isdigit()):
        raise ConfigError("is no key; write its id (0 to 127) and its secret in hexadecimal digits")
    try:
        return Key(int(words[0][:6]), bytes.fromhex(words[1]))
    except ValueError:
        raise ConfigError("has a secret that is not hexadecimal; make one by: openssl rand -hex 32") from None
    except LocalProtocolError as error:
        raise ConfigError(str(error)) from None
