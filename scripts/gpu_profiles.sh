#!/bin/bash
# Makes profiles of the ten models on this machine's GPU, as files that planner, simulator and experiments
# read anywhere. Each names the device and its libraries' versions.
#
#   scripts/gpu_profiles.sh build/antichain docs/profiles
#     docs/profiles/nvidia-h200/float32-32/resnet18.json …     precision and samples of a micro-batch; tf32
#                                                              is float32 on the device cuda:tf32
#   python3 -m antichain.experiments speedup --profiles docs/profiles/nvidia-h200/float32-32 …
#
# MODELS, PRECISIONS, MICROBATCHES (samples) and DEVICE choose others than all ten models, "float32 tf32
# bf16", "32 128" and cuda. The exit code is 77 where there is no device.
set -euo pipefail
program="$1" folder="$2"
models="${MODELS:-vgg16 resnet18 resnet50 resnet101 alexnet resnext50 resnext101 inception_v3 densenet121
squeezenet1_0}"
device="${DEVICE:-cuda}" per_step=8
device="${device%:tf32}"  # which PRECISIONS says
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

if ! "$program" info --model resnet20 --device "$device" >"$log" 2>&1; then
  echo "skipped, needs a CUDA device: $(tail -n 1 "$log")"
  exit 77
fi
start=$SECONDS bad=0 made=0 name=
mkdir -p "$folder"
for precision in ${PRECISIONS:-float32 tf32 bf16}; do
  how=(--device "$device" --precision "$precision")
  [ "$precision" != tf32 ] || how=(--device "$device:tf32" --precision float32)
  for samples in ${MICROBATCHES:-32 128}; do
    for model in $models; do
      file="$(mktemp "$folder/profile.XXXXXX")"
      if ! "$program" profile --model "$model" "${how[@]}" --batch $((samples * per_step)) \
        --microbatches $per_step --profile-cache none --json "$file" >"$log" 2>&1; then
        echo "FAILED  $model in $precision, micro-batches of $samples: $(tail -n 1 "$log")"
        rm -f "$file"
        bad=1
        continue
      fi
      name="$(sed -n 's/^  "device": "\([^,"]*\).*/\1/p' "$file" | tr 'A-Z ' 'a-z-')"
      mkdir -p "$folder/$name/$precision-$samples"
      chmod 644 "$file"
      mv "$file" "$folder/$name/$precision-$samples/$model.json"
      made=$((made + 1))
    done
  done
done
echo "ok      $made profiles in $((SECONDS - start)) s, in $folder/$name"
exit $bad
