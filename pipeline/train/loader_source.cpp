#include "pipeline/train/loader_source.h"

namespace antichain {

void LoaderSource::fill(std::string_view input, int microbatch, const Tensor& out) {
  const int64_t batch = position.batch + microbatch / microbatches_, all = sampler().batches();
  loader_.fill(input, {.epoch = position.epoch + batch / all, .batch = batch % all},
               microbatch % microbatches_, out);
}

void LoaderSource::fill_next(std::string_view input, int microbatch, const Tensor& out) {
  drawn_ = next;
  loader_.fill(input, *next, microbatch, out);
}

const RawImages* LoaderSource::raw(std::string_view input) const {
  return input == Loader::images_input ? loader_.raw() : nullptr;
}

}  // namespace antichain
