#!/bin/bash
# no_reference_code.sh PROGRAM: no convolution of the models is left to oneDNN's reference code, which is
# dozens of times slower than what it generates for the processor. Gradients of images are an exception:
# kernels exist for them, and never run, because nobody asks for them.
set -uo pipefail
program="$1" bad=0
for form in cifar imagenet; do
  for model in alexnet convnext_tiny densenet121 efficientnet_b0 inception_v3 mobilenet_v2 mobilenet_v3_large resnet18 \
    resnet50 resnet101 resnext50 resnext101 squeezenet1_0 vgg16; do
    created=$(DNNL_VERBOSE=2 "$program" info --model "$model" --form "$form" 2>&1 | grep -E ",create.*,convolution,")
    [ -n "$created" ] || { echo "$model: oneDNN says nothing"; exit 77; }
    slow=$(grep ",ref" <<<"$created" | grep -vE ",backward_data,.*_ic3oc")
    [ -z "$slow" ] || { echo "$model in $form form:"; echo "$slow"; bad=1; }
  done
done
exit $bad
