#include "app/data/tensor_stream.h"

#include <nlohmann/json.hpp>

namespace antichain {
namespace {

std::vector<int64_t> labels_shape(int64_t images, int64_t classes) {
  return classes == 0 ? std::vector{images} : std::vector{images, classes};
}

// Labels come first: 64-bit numbers before 32-bit ones keep every tensor aligned.
std::string safetensors_header(const std::vector<int64_t>& shape, int64_t classes) {
  const int64_t labels_end = shape[0] * (classes == 0 ? 8 : 4 * classes);
  int64_t image_bytes = 4;
  for (const int64_t d : shape) image_bytes *= d;
  const nlohmann::ordered_json header = {
      {"labels",
       {{"dtype", classes == 0 ? "I64" : "F32"},
        {"shape", labels_shape(shape[0], classes)},
        {"data_offsets", {0, labels_end}}}},
      {"images",
       {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {labels_end, labels_end + image_bytes}}}}};
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

TensorStream::TensorStream(const std::string& file, WeightFormat format, std::vector<int64_t> shape,
                           int64_t classes) {
  if (format == WeightFormat::hdf5) {
    hdf5_ = std::make_unique<ArrayWriter>(
        file, std::vector<ArraySpec>{{.path = "images", .shape = shape, .type = ArrayType::f32},
                                     {.path = "labels",
                                      .shape = labels_shape(shape[0], classes),
                                      .type = classes == 0 ? ArrayType::i64 : ArrayType::f32}});
    return;
  }
  plain_.emplace(file);
  plain_->write(safetensors_header(shape, classes));
}

void TensorStream::write(std::span<const std::byte> bytes) {
  plain_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void TensorStream::append_labels(std::span<const std::byte> labels) {
  if (hdf5_) return hdf5_->append(1, labels);
  write(labels);
}

void TensorStream::append(std::span<const float> images) {
  if (hdf5_) return hdf5_->append(0, std::as_bytes(images));
  write(std::as_bytes(images));
}

void TensorStream::finish() {
  if (hdf5_)
    hdf5_->finish();
  else
    plain_->commit();
}

}  // namespace antichain
