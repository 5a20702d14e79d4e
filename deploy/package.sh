#!/usr/bin/env bash
# Builds KiloKV, and makes its packages: kilokv_*.deb and libkilokv-dev_*.deb for Debian 12, and an archive that runs in
# any folder of a Linux with glibc 2.36 or newer. docs/install.md says how to use them.
#
#   deploy/package.sh [--no-install] [--to FOLDER] [CPACK OPTION ...]
#
#   --no-install    installs nothing; if a package is missing, the build says which
#   --to FOLDER     where the packages go (default: build/packages)
#   CPACK OPTION    such as -G DEB, or -D CPACK_DEBIAN_PACKAGE_RELEASE=2
set -euo pipefail
cd "$(dirname "$0")/.."

install=yes to=build/packages
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=no ;;
    --to) to=$2; shift ;;
    --help | -h)
      sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    *) break ;;
  esac
  shift
done

[ "$install" = no ] || deploy/install-deps.sh package
# A folder of an earlier build may have been configured before all tools were there.
[ ! -f build/release/build.ninja ] || cmake -S . -B build/release -Wno-dev
deploy/build.sh installed
cpack --config build/release/CPackConfig.cmake -B "$to" "$@"
rm -rf "$to/_CPack_Packages"
ls -l "$to"
