# run.sh's choice of images and of a folder for the results, and its last words.

# Options that say which network is trained on what.
network_or_data="--model|--graph|--form|--image|--classes|--dataset|--data-dir|--config"

# names "--a|--b" OPTION … is true where one of the options is --a or --b, with or without =VALUE.
names() {
  local pattern="^($1)(=|\$)"; shift
  local option
  for option in "$@"; do [[ "$option" =~ $pattern ]] && return; done
  return 1
}

# Prints why training would have no CIFAR-10, or nothing. The program looks for it, and downloads it, as it
# does for training.
why_no_cifar10() {
  local said code=0
  mkdir -p build/images
  said="$(build/antichain data batches --quiet --batch 1 --out build/images/one.safetensors 2>&1)" || code=$?
  if [ "$code" = 0 ] && [[ "$said" != *"training on generated images"* ]]; then return; fi
  tr '\n' ' ' <<<"$said" | sed -E 's/ +/ /g; s/ $//; s/^antichain: (warning: )?//; s/: training on generated images.*//'
}

# Prints the name of scikit-learn's digits.csv.gz, which is taken from Debian's package without installing it,
# or nothing. apt's own lists of packages may be missing or old; then it is given others.
digits_file() {
  (
    cd build/images
    [ ! -d package ] || exit 0
    rm -rf lists unpacked python3-sklearn_*.deb
    apt=(timeout 60 apt-get -o Acquire::http::Timeout=10 -o Acquire::Retries=0)
    own_lists=(-o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/lists" -o APT::Sandbox::User=root)
    { "${apt[@]}" download python3-sklearn || {
      mkdir lists && "${apt[@]}" "${own_lists[@]}" update && "${apt[@]}" "${own_lists[@]}" download python3-sklearn
    }; } && dpkg -x python3-sklearn_*.deb unpacked && mv unpacked package && rm -rf lists
  ) >build/images/log 2>&1 || return 0
  find build/images/package -name digits.csv.gz
}

# Sets `config` to the training whose images are here, and says what they are where they are not CIFAR-10's.
choose_images() {
  local why file
  if [ -n "${CIFAR10_DIR:-}" ]; then return; fi
  why="$(why_no_cifar10)"
  if [ -z "$why" ]; then return; fi
  echo
  echo "$why."
  file="$(digits_file)"
  if [ -n "$file" ] && build/antichain data pack --quiet --digits "$file" --out build/images/digits.h5; then
    config=scripts/digits.toml
    echo "So this trains on scikit-learn's digits: 1,797 real images of 8 x 8 pixels, the last 360 of them for tests."
  else
    echo "Neither can scikit-learn's digits (see build/images/log). So this trains on generated images: it shows that"
    echo "training works, and its accuracy says nothing about real ones."
  fi
  echo "Give --data-dir D, a folder with CIFAR-10's binary files, for CIFAR-10."
  echo
}

# Sets `results` to the option for a new folder of runs/, unless the options, or a file of them, may name one.
keep_results() {
  results=()
  if names "--results|--config" "$@"; then return; fi
  local n=1
  mkdir -p runs
  while ! mkdir "runs/$n" 2>/dev/null; do
    [ -e "runs/$n" ] || mkdir "runs/$n"
    n=$((n + 1))
  done
  results=(--results "runs/$n")
}

# tell_what_is_kept CODE says where the weights are and what to try next. The folder of a run that was refused
# goes again.
tell_what_is_kept() {
  if [ "${#results[@]}" = 0 ]; then return; fi
  local folder="${results[1]}"
  rmdir "$folder" 2>/dev/null && return
  if [ "$1" != 0 ]; then return; fi
  cat <<END

The trained weights are in $folder/weights.h5, and all that was printed is in $folder/log.txt. What to do next:

how it would run on 4 ranks:  build/antichain simulate --profile $folder/profile.json --stages 4
the same bits on one rank?    build/antichain train --local 1 --config $folder/config.toml --results $folder-alone
                              build/antichain compare $folder $folder-alone
more:                         docs/tutorial.md
END
}
