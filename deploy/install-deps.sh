#!/usr/bin/env bash
# Installs the Debian 12 packages that KiloKV needs, the npm packages of server/console and, for the checks, those of
# client/node and tests/console. Ends at once if all of them are installed.
#
#   deploy/install-deps.sh          to build, test and check
#   deploy/install-deps.sh build    to build only
#   deploy/install-deps.sh package  to build, and to make packages
#
# Uses sudo if not root. Never installs the CUDA toolkit, which is optional: the build uses nvcc if it finds it.
set -euo pipefail

build_packages=(
  build-essential cmake ninja-build ccache git pkg-config ca-certificates
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  librocksdb-dev libspdlog-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev
  libboost-dev prometheus-cpp-dev libssl-dev libjemalloc-dev libxxhash-dev libcsv-dev libisal-dev libabsl-dev
  libgtest-dev libgmock-dev python3 libjs-chart.js help2man
)
package_packages=(dpkg-dev file)
check_packages=(
  clang-format clang-tidy clang libclang-rt-14-dev strace procps spin curl openssl prometheus systemd lintian python3-yaml
  python3-grpcio python3-protobuf python3-numpy python3-setuptools python3-wheel python3-pip python3-venv mypy
  chromium
)
# Node may also come from elsewhere. npm brings the charts of the console, so the build needs it.
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  build_packages+=(nodejs npm)
fi
# For the tests with the label packages alone.
system_packages=(debootstrap systemd-container)

mode=${1:-all}
case "$mode" in
  build) wanted=("${build_packages[@]}") ;;
  package) wanted=("${build_packages[@]}" "${package_packages[@]}") ;;
  all) wanted=("${build_packages[@]}" "${package_packages[@]}" "${check_packages[@]}" "${system_packages[@]}") ;;
  *)
    echo "usage: $0 [build|package]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "$0: needs Debian 12, or a system with its packages" >&2
  echo "$0: on another system, install the packages that match these: ${wanted[*]}" >&2
  exit 1
fi

# What the console, and for the checks the Node client and the tests of the console need, as the package-lock.json of each
# says.
install_node_packages() {
  local folder folders=(server/console)
  if [ "$mode" = all ]; then
    folders+=(client/node tests/console)
  fi
  for folder in "${folders[@]}"; do
    folder=$(dirname "$0")/../$folder
    npm ls --prefix "$folder" >/dev/null 2>&1 || npm ci --prefix "$folder" --no-audit --no-fund </dev/null
  done
}

installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p')
missing=()
for package in "${wanted[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#wanted[@]} are installed"
  install_node_packages
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "$0: run it as root, or install sudo; missing packages: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "packages: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q </dev/null
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
install_node_packages
