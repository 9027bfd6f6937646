#include "pipeline/train/loader_source.h"

#include <fmt/format.h>

#include "framework/error.h"

namespace antichain {

void LoaderSource::fill(std::string_view input, const BatchPosition& at, int microbatch, const Tensor& out) {
  if (input == "images") return loader_.fill_images(at, microbatch, out);
  if (input == "labels") return loader_.fill_labels(at, microbatch, out);
  throw Error(fmt::format("the model has an input '{}' that no data set fills", input),
              "name inputs images or labels");
}

void LoaderSource::fill(std::string_view input, int microbatch, const Tensor& out) {
  fill(input, position, microbatch, out);
}

void LoaderSource::fill_next(std::string_view input, int microbatch, const Tensor& out) {
  drawn_ = next;
  fill(input, *next, microbatch, out);
}

const RawImages* LoaderSource::raw(std::string_view input) const {
  return input == "images" ? loader_.raw() : nullptr;
}

}  // namespace antichain
