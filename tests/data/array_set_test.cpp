// Tests data sets of arrays of any names: what a network's inputs get of them, and what is refused.
#include "data/array_set.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "data/loader.h"
#include "framework/files/hdf5_arrays.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

using ArrayRows = std::vector<std::byte>;

template <class T>
ArrayRows bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::vector<T> counting(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), T(0));
  return values;
}

// Three samples of each array for training, and as many for tests.
struct StoredArrays {
  TemporaryFolder folder;
  std::string file = folder.str() + "/set.h5";
  std::vector<ArraySpec> specs;
  std::vector<ArrayRows> rows;

  void add(const std::string& name, std::vector<int64_t> shape, ArrayType type, const ArrayRows& values) {
    for (const char* split : {"train/", "test/"}) {
      specs.push_back({.path = split + name, .shape = shape, .type = type});
      rows.push_back(values);
    }
  }
  DataSplits read(const std::vector<AssignedArray>& assigned) {
    ArrayWriter writer(file, specs);
    writer.set({"mean", std::vector<double>{0.5}});
    writer.set({"std", std::vector<double>{0.25}});
    for (size_t i = 0; i < rows.size(); ++i) writer.append(i, rows[i]);
    writer.finish();
    return read_array_set(file, assigned);
  }
};

// Returns the batch that follows the order of the file, padded.
Tensor filled(const std::shared_ptr<const DataSet>& set, const std::string& input, const TensorSpec& spec) {
  Loader loader(set, {.batch = spec.shape[0], .train = false});
  Tensor out = Tensor::host(spec);
  loader.fill(input, {0, 0}, 0, out);
  return out;
}

TEST(ArraySet, InputsGetWhatTheyTake) {
  StoredArrays stored;
  stored.add("pictures", {3, 2, 4, 1}, ArrayType::u8, bytes_of(counting<uint8_t>(24)));
  stored.add("mask", {3, 2, 4}, ArrayType::u8, bytes_of(counting<uint8_t>(24)));
  stored.add("place", {3, 2}, ArrayType::f32, bytes_of(std::vector<float>{1, -2, 0.5f, 4, 5, 6}));
  stored.add("count", {3}, ArrayType::i64, bytes_of(std::vector<int64_t>{7, -1, 2'000'000'000}));
  const auto set = stored
                       .read({{"images", "pictures"},
                              {"labels", "mask", false},
                              {"where", "place"},
                              {"number", "count", false},
                              {"again", "pictures", false}})
                       .train;
  const Tensor images = filled(set, "images", {{4, 1, 2, 4}});
  const Tensor labels = filled(set, "labels", {{4, 2, 4}, DType::i32});
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_FLOAT_EQ(images.data<float>()[i], (float(i) / 255 - 0.5f) / 0.25f) << "pixels are normalised";
    EXPECT_EQ(labels.data<int32_t>()[i], i) << "the numbers of a target stay";
  }
  EXPECT_EQ(images.data<float>()[24], 0) << "padding";
  EXPECT_EQ(labels.data<int32_t>()[24], -1) << "padding counts nothing";
  EXPECT_EQ(filled(set, "where", {{4, 2}}).data<float>()[1], -2);
  EXPECT_EQ(filled(set, "number", {{4, 1}, DType::i32}).data<int32_t>()[2], 2'000'000'000);
  const Tensor again = filled(set, "again", {{4, 1, 2, 4}});
  EXPECT_EQ(std::memcmp(again.raw(), images.raw(), size_t(images.bytes())), 0) << "the target is the input";
}

TEST(ArraySet, WhatDoesNotFitIsRefused) {
  StoredArrays stored;
  stored.add("x", {3, 2}, ArrayType::f32, bytes_of(counting<float>(6)));
  stored.add("y", {3}, ArrayType::i64, bytes_of(std::vector<int64_t>{1, 2, int64_t(1) << 31}));
  stored.add("z", {2}, ArrayType::i64, bytes_of(counting<int64_t>(2)));
  const auto set = stored.read({{"a", "x"}, {"b", "y", false}}).train;
  const auto check = [&](const std::string& input, const TensorSpec& spec) {
    return [=] { Loader::check_input(set, input, spec); };
  };
  expect_error(check("c", {{2, 2}}), {"an input 'c'", "a or b", "--inputs"});
  expect_error(check("a", {{2, 3}}), {"'a'", "2 for each sample", "takes 3"});
  expect_error(check("a", {{2, 2}, DType::i32}), {"'a'", "float32", "whole numbers"});
  expect_error([&] { filled(set, "b", {{3}, DType::i32}); }, {"record 2", "2147483648", "32 bits"});
  expect_error([&] { read_array_set(stored.file, {{"a", "x"}, {"b", "w"}}); }, {"no dataset '/train/w'"});
  expect_error([&] { read_array_set(stored.file, {{"a", "x"}, {"b", "z"}}); }, {"2 samples", "one row"});
}

}  // namespace
}  // namespace antichain
