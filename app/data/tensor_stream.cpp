#include "app/data/tensor_stream.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace antichain {
namespace {

std::string safetensors_header(const std::vector<ArraySpec>& tensors) {
  nlohmann::ordered_json header;
  int64_t end = 0;
  for (const ArraySpec& tensor : tensors) {
    const int64_t begin = std::exchange(end, end + tensor.shape[0] * tensor.row_bytes());
    header[tensor.path] = {{"dtype", tensor.type == ArrayType::i64 ? "I64" : "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

TensorStream::TensorStream(const std::string& file, WeightFormat format, std::vector<ArraySpec> tensors) {
  if (format == WeightFormat::hdf5) {
    hdf5_ = std::make_unique<ArrayWriter>(file, std::move(tensors));
    return;
  }
  plain_.emplace(file);
  plain_->write(safetensors_header(tensors));
}

void TensorStream::append(size_t tensor, std::span<const std::byte> bytes) {
  if (hdf5_) return hdf5_->append(tensor, bytes);
  plain_->write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void TensorStream::finish() {
  if (hdf5_)
    hdf5_->finish();
  else
    plain_->commit();
}

}  // namespace antichain
