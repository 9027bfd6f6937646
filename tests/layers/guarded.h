// A Guarded tensor lies between two guard zones in the backend's memory, with a copy on the host where that
// memory is elsewhere. It finds writes outside the tensor, and padding that is not zero.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/backend.h"
#include "framework/bf16.h"

namespace antichain::harness {

class Guarded {
 public:
  Guarded(const Context& context, std::string name, TensorSpec spec)
      : context_(&context), name_(std::move(name)) {
    const Backend& backend = context.backend();
    const int64_t bytes = spec.bytes() + 2 * guard_bytes;
    memory_ = allocate_host(bytes);
    there_ = backend.host_memory() ? memory_ : backend.allocate(bytes);
    tensor_ = Tensor(spec, std::shared_ptr<std::byte>(there_, there_.get() + guard_bytes));
    here_ = Tensor(spec, std::shared_ptr<std::byte>(memory_, memory_.get() + guard_bytes));
    std::memset(memory_.get(), int(guard), size_t(bytes));
    poison();
  }

  const Tensor& tensor() const { return tensor_; }

  void poison() const {
    std::memset(here_.raw(), 0xFF, size_t(here_.bytes()));  // NaN in all floating types, −1 in int32
    put();
  }

  void load(const std::vector<double>& plain) const {
    relayout(as_plain(plain), here_);
    put();
  }

  std::vector<double> read() const {
    fetch();
    TensorSpec spec = tensor_.spec();
    spec.layout = Layout::plain;
    const Tensor plain = Tensor::host(spec);
    relayout(here_, plain);
    std::vector<double> numbers(size_t(plain.elements()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = spec.dtype == DType::f64    ? plain.data<double>()[i]
                   : spec.dtype == DType::i32  ? plain.data<int32_t>()[i]
                   : spec.dtype == DType::bf16 ? double(plain.data<Bf16>()[i])
                                               : plain.data<float>()[i];
    }
    return numbers;
  }

  void check_guards() const {
    fetch();
    const auto intact = [](const std::byte* from) {
      return std::all_of(from, from + guard_bytes, [](std::byte b) { return b == guard; });
    };
    EXPECT_TRUE(intact(memory_.get())) << "something wrote before " << name_;
    EXPECT_TRUE(intact(here_.raw() + here_.bytes())) << "something wrote past " << name_;
  }

  // Stored values must equal those of the same logical tensor with zero padding.
  void check_padding() const {
    const Tensor clean = Tensor::host(tensor_.spec());
    relayout(as_plain(read()), clean);
    int64_t wrong = 0;
    for (int64_t i = 0; i < clean.elements(); ++i) {
      if (tensor_.dtype() == DType::f32) wrong += clean.data<float>()[i] != here_.data<float>()[i];
      if (tensor_.dtype() == DType::bf16) wrong += clean.data<Bf16>()[i] != here_.data<Bf16>()[i];
    }
    EXPECT_EQ(wrong, 0) << "padding (or a value that is NaN) of " << name_ << " in layout "
                        << name_of(tensor_.layout());
  }

 private:
  static constexpr int64_t guard_bytes = 4096;
  static constexpr std::byte guard{0xA5};

  Tensor as_plain(const std::vector<double>& numbers) const {
    TensorSpec spec = tensor_.spec();
    spec.layout = Layout::plain;
    const Tensor plain = Tensor::host(spec);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (spec.dtype == DType::f64) plain.data<double>()[i] = numbers[i];
      if (spec.dtype == DType::f32) plain.data<float>()[i] = float(numbers[i]);
      if (spec.dtype == DType::bf16) plain.data<Bf16>()[i] = Bf16(float(numbers[i]));
      if (spec.dtype == DType::i32) plain.data<int32_t>()[i] = int32_t(numbers[i]);
    }
    return plain;
  }

  // Returns all bytes, guards included.
  Tensor all(const std::shared_ptr<std::byte>& memory) const {
    return {{{tensor_.bytes() + 2 * guard_bytes}, DType::u8}, memory};
  }
  void put() const {
    if (there_ != memory_) context_->backend().copy(*context_, all(memory_), all(there_));
  }
  void fetch() const {
    if (there_ != memory_) context_->backend().copy(*context_, all(there_), all(memory_));
  }

  const Context* context_;
  std::string name_;
  std::shared_ptr<std::byte> memory_, there_;
  Tensor tensor_, here_;
};

}  // namespace antichain::harness
