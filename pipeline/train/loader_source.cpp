#include "pipeline/train/loader_source.h"

namespace antichain {

void LoaderSource::fill(std::string_view input, int microbatch, const Tensor& out) {
  loader_.fill(input, position, microbatch, out);
}

void LoaderSource::fill_next(std::string_view input, int microbatch, const Tensor& out) {
  drawn_ = next;
  loader_.fill(input, *next, microbatch, out);
}

const RawImages* LoaderSource::raw(std::string_view input) const {
  return input == Loader::images_input ? loader_.raw() : nullptr;
}

}  // namespace antichain
