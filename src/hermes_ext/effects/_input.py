"""Standard input: which programs are known to take it for data, or for nothing.

A program that stands in neither list may run what it is fed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hermes_ext.effects._words import Hole, Word

# What these are fed is text to them, or they do not look at it.
_DATA_LISTED: Final = """
[ 7z 7za 7zr 7zz ack addr2line ag apropos apt-cache ar arp awk b2sum b3sum base32 base64 basename
basenc bat batcat bunzip2 bzcat bzgrep bzip2 c++filt cal caller cat chattr chgrp chmod chown cksum
clear cmp colordiff colrm column comm cp crc32 csplit curl cut date dd df diff diff3 dig dir
dirname disown dmesg dpkg-query du dwarfdump echo egrep exa expand expr eza factor fallocate false
fd fdfind fg fgrep bg file find findmnt finger fmt fold free gawk getconf getent getfacl getfattr
ggrep gfind gh git grep groups gsed gtar gunzip gzcat gzip hadolint hd head help hexdump hg
history host hostname hostnamectl iconv id ifconfig info install iostat ipcs jaq jar jobs join
journalctl jq jsonlint kill killall last lastlog ld ldd less link ln locale locate logname ls
lsattr lsblk lscpu lsd lsmem lsmod lsns lsof lspci lsusb lzcat lzma machine man mawk md5
md5sum mkdir mkfifo mknod mktemp mlocate more mpstat mtr mv namei nawk ncal netstat nl nm nproc
nslookup numfmt objdump od original-awk otool paste pathchk pbpaste pcre2grep pcregrep pdffonts
pdfinfo pgrep pidof pigz ping ping6 pkg-config pkill plocate pr printenv printf ps pstree
pwd readelf readlink realpath reset rev rg rm rmdir route sdiff sed sensors seq setfacl setfattr
sha1 sha1sum sha224sum sha256 sha256sum sha384sum sha512sum shasum shellcheck shred shuf size
sleep sort split ss stat strings stty sum suspend sw_vers systemctl tac tail tar tee test
timedatectl times tldr tokei touch tput tr tracepath traceroute trash trash-put tree true truncate
tsort tty type ug ug+ ugrep ugrep+ ulimit umask uname unexpand uniq unlink unlzma unpigz unxz
unzip unzstd uptime users vdir vmstat w wait wc whatis whereis which who whoami whois xargs
xmllint xmlstarlet xxd xz xzcat xzdec xzgrep yamllint yes yq zcat zdump zegrep zfgrep zgrep zip
zipinfo zless zmore zstd zstdcat :
"""
# What these do is known where it is known at all; else what they are fed may be what they run.
_READ_LISTED: Final = """
apk apt apt-mark arch as asdf ash at aws az bash batch black brew bsdtar bun bundle bundler busybox
c++ caffeinate cargo cc chrt clang clang++ cmake composer conda crontab dash defaults deno dnf doas
docker docker-compose dpkg env eslint ffmpeg ffprobe flatpak flock g++ gcc gcloud gem gmake go
gofmt gtimeout helm ionice ip java javac julia ksh kubectl launchctl ltrace lua luajit make mamba
micromamba mvn mypy nerdctl nice ninja node nodejs nohup npm nvm oc patch perl php pip pip3 pipx
pnpm podman poetry prettier pyenv pypy3 python python3 python3.10 python3.11 python3.12 python3.13
python3.14 python3.8 python3.9 R rbash rpm Rscript rsync ruby ruff rustc rustup service setsid sh
snap stdbuf strace sudo svn sysctl taskset terraform timeout ts-node tsc tsx unbuffer uv watch wget
yarn yum zsh
"""
_DATA: Final = frozenset(_DATA_LISTED.split())
_READ: Final = frozenset(_READ_LISTED.split())
# These take a file of commands: `awk -f -`, `curl -K -`.
_PROGRAMMED: Final = frozenset(
    {"awk", "curl", "gawk", "gsed", "mawk", "nawk", "original-awk", "sed"}
)
_OF_COMMANDS: Final = re.compile(r"-[A-Za-z]*[fK]|--(?:config|file)")


def takes_for_data(name: str, words: Sequence[Word]) -> bool:
    """Whether what a program is fed is surely not run, whatever else it does."""
    told = any(isinstance(each, Hole) or _OF_COMMANDS.match(each) for each in words[1:])
    return name in _DATA and not (told and name in _PROGRAMMED)


def may_run_input(name: str, words: Sequence[Word] = ()) -> bool:
    """Whether a program of which all else is known may run what it is fed."""
    asked = name == "openssl" and len(words) > 1  # it reads commands where it is given none
    return not asked and name not in _DATA and name not in _READ
