// Tests weight files: both formats give back the bits they were given, and anything spoilt is one sentence,
// never a crash.
#include "framework/files/weights.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "framework/files/hdf5_arrays.h"
#include "framework/files/safetensors.h"
#include "framework/json.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

NamedTensor floats(std::string name, std::vector<int64_t> shape, std::vector<float> values) {
  return {std::move(name), std::move(shape), std::move(values)};
}

// Has every shape there is: vectors, filters, scalars, nothing at all; and values that a text would not keep.
Weights examples() {
  Weights w;
  std::vector<float> filter(7 * 3 * 5 * 3);
  std::mt19937 random(1);
  for (float& v : filter) v = std::ldexp(float(random()), -31);
  w.add(floats("conv.weight", {7, 3, 5, 3}, filter));
  const float inf = std::numeric_limits<float>::infinity();
  uint32_t payload = 0x7FC12345;
  float nan;
  std::memcpy(&nan, &payload, 4);
  w.add(floats("conv.bias", {5}, {-0.0f, nan, -inf, std::numeric_limits<float>::denorm_min(), 0.1f}));
  w.add({"bn.num_batches_tracked", {}, std::vector<int64_t>{int64_t(1) << 40}});
  w.add(floats("loss", {}, {2.5f}));
  w.add(floats("nothing", {0, 4}, {}));
  w.add({"labels", {3}, std::vector<int64_t>{-1, 9, INT64_MIN}});
  w.add(floats("a name with blanks, ümläuts and \"quotes\"", {1}, {1}));
  return w;
}

void expect_same(const Weights& got, const Weights& expected) {
  EXPECT_EQ(got.size(), expected.size());
  for (const NamedTensor& tensor : expected) {
    const NamedTensor* found = got.find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    EXPECT_TRUE(*found == tensor) << tensor.name << ": " << found->shape_text() << found->type_text();
  }
}

class WeightFiles : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(WeightFiles, GiveBackEveryBit) {
  const Weights w = examples();
  const std::string bytes = encode(w, GetParam());
  expect_same(decode(bytes, "f"), w);
  EXPECT_EQ(encode(w, GetParam()), bytes) << "the same weights are the same bytes";
  const WeightFormat other =
      GetParam() == WeightFormat::hdf5 ? WeightFormat::safetensors : WeightFormat::hdf5;
  const std::string across = encode(decode(bytes, "f"), other);
  expect_same(decode(across, "g"), w);
  const std::string back = encode(decode(across, "g"), GetParam());
  expect_same(decode(back, "h"), w);
}

// 64 MiB of zeros in some 100 kB.
TEST(PackedWeights, AreNotUnpackedBeyondWhatTheNetworkCouldHave) {
  const TemporaryFolder folder;
  const std::string file = folder.str() + "/bomb.h5";
  ArrayWriter writer(
      file, {{.path = "conv1.weight", .shape = {1024, 16384}, .type = ArrayType::f32, .compressed = true}});
  const std::vector<float> zeros(1024 * 16384);
  writer.append(0, std::as_bytes(std::span(zeros)));
  writer.finish();
  EXPECT_EQ(read_weights(file).size(), 1u) << "as such it is a good file";
  expect_error([&] { read_weights(file, 1 << 20); },
               {"bomb.h5", "'conv1.weight' of 1024 x 16384", "far more than the network"});
}

TEST_P(WeightFiles, HoldNothingAndHundreds) {
  EXPECT_EQ(decode(encode({}, GetParam()), "f").size(), 0u);
  Weights many;
  for (int i = 0; i < 300; ++i)
    many.add(floats("layer" + std::to_string(i) + ".weight", {1 + i % 7},
                    std::vector<float>(1 + i % 7, float(i))));
  const Weights read = decode(encode(many, GetParam()), "f");
  expect_same(read, many);
  for (size_t i = 0; i < many.size(); ++i) EXPECT_EQ(read[i].name, many[i].name) << "the order is kept";
}

TEST_P(WeightFiles, TruncatedAnywhereAreRefused) {
  const std::string bytes = encode(examples(), GetParam());
  for (size_t n = 0; n < bytes.size(); n += n < 600 ? 1 : 37)
    EXPECT_THROW(decode(bytes.substr(0, n), "f"), Error) << n << " of " << bytes.size();
}

TEST_P(WeightFiles, TrailingBytesAreNotAnyonesBusiness) {
  const std::string longer = encode(examples(), GetParam()) + std::string(16, '\0');
  if (GetParam() == WeightFormat::safetensors)  // the format's own rule
    expect_error([&] { decode(longer, "f.safetensors"); }, {"f.safetensors", "16 bytes belong to no tensor"});
  else  // as HDF5 has it: the superblock says where the file ends
    expect_same(decode(longer, "f.h5"), examples());
}

// A flipped bit is refused or changes the one tensor it hits: it does not crash, and no other tensor changes.
TEST_P(WeightFiles, AFlippedBitChangesNoOtherTensor) {
  const Weights w = examples();
  const std::string bytes = encode(w, GetParam());
  int refused = 0, silent = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); bit += GetParam() == WeightFormat::hdf5 ? 11 : 3) {
    std::string spoilt = bytes;
    spoilt[bit / 8] = char(spoilt[bit / 8] ^ (1 << bit % 8));
    try {
      const Weights read = decode(spoilt, "f");
      int changed = 0;
      for (const NamedTensor& t : w) changed += !read.find(t.name) || !(*read.find(t.name) == t);
      EXPECT_LE(changed, 2) << "bit " << bit;  // two where two names swap their places
      silent += changed > 0;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  if (GetParam() == WeightFormat::hdf5) {
    EXPECT_EQ(silent, 0) << "our HDF5 files have checksums";
  }
}

TEST_P(WeightFiles, AreReadWhole) {
  const std::string file = ::testing::TempDir() + "/antichain_weights_" + std::to_string(::getpid());
  write_weights(file, examples(), GetParam());
  expect_same(read_weights(file), examples());
  std::remove(file.c_str());
  expect_error([&] { read_weights(file); }, {file, "No such file"});
}

INSTANTIATE_TEST_SUITE_P(Both, WeightFiles, ::testing::Values(WeightFormat::hdf5, WeightFormat::safetensors),
                         [](const auto& info) {
                           return info.param == WeightFormat::hdf5 ? "hdf5" : "safetensors";
                         });

TEST(Weights, NamesAreUniqueAndCanBePaths) {
  Weights w;
  w.add(floats("a", {}, {1}));
  expect_error([&] { w.add(floats("a", {}, {1})); }, {"two tensors of the name 'a'"});
  w.add(floats("a b/c", {}, {1}));
  for (const char* bad : {"", ".", "/a", "a/", "a//b", "a/../b", "a\nb"})
    expect_error([&] { w.add(floats(bad, {}, {1})); }, {"can't be the name of a tensor"});
}

TEST(Weights, OtherFilesAreRecognised) {
  expect_error([] { decode("", "w.h5"); }, {"w.h5", "neither", "empty"});
  expect_error([] { decode("PK\x03\x04 and more of it", "w.pt"); }, {"w.pt", "torch.save"});
  expect_error([] { decode("a text of some length", "w.txt"); }, {"w.txt", "neither"});
}

// Returns a safetensors file with this header and so many bytes of data.
std::string safetensors(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int begin,
                  int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

void expect_refused(const std::string& header, size_t data_bytes, std::initializer_list<std::string> words) {
  expect_error([&] { from_safetensors(safetensors(header, data_bytes), "w"); }, words);
}

TEST(Safetensors, OffsetsCoverTheDataExactlyOnce) {
  const auto two = [](int begin, int end) {
    return "{" + entry("a", "F32", "[2]", 0, 8) + "," + entry("b", "F32", "[2]", begin, end) + "}";
  };
  EXPECT_EQ(from_safetensors(safetensors(two(8, 16), 16), "w").size(), 2u);
  expect_refused(two(4, 12), 12, {"'b'", "bytes 4 to 12", "8 comes next"});  // overlap
  expect_refused(two(12, 20), 20, {"'b'", "8 comes next"});                  // a hole
  expect_refused(two(8, 16), 12, {"'b'", "bytes 8 to 16 of 12"});            // beyond the end
  expect_refused(two(8, 16), 20, {"4 bytes belong to no tensor"});           // a rest
  expect_refused(two(8, 4), 8, {"'b'"});                                     // backwards
  expect_refused("{" + entry("a", "F32", "[3]", 0, 8) + "}", 8, {"'a'", "12 bytes"});
  expect_refused("{" + entry("a", "F32", "[-2]", 0, 8) + "}", 8, {"a.shape[0]", "-2"});
}

TEST(Safetensors, HeaderIsStrict) {
  expect_refused("{" + entry("a", "I16", "[4]", 0, 8) + "}", 8, {"'a' is of type I16", "F32"});
  expect_refused("{" + entry("a", "F16", "[3]", 0, 8) + "}", 8, {"'a' of 3 takes 6 bytes", "has 8"});
  expect_refused("{" + entry("a", "F32", "[1]", 0, 4) + "," + entry("a", "F32", "[1]", 4, 8) + "}", 8,
                 {"\"a\" stands twice"});
  expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, {"a", "\"data_offsets\" is missing"});
  expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"x\":1}}", 4, {"\"x\""});
  expect_refused("{\"a\":3}", 0, {"a", "object"});
  expect_refused("{\"a\"", 0, {"no valid JSON"});
  expect_refused("{" + entry("a//b", "F32", "[]", 0, 4) + "}", 4, {"'a//b'"});
  // 2^53 elements squared would overflow any product.
  expect_refused("{" + entry("a", "F32", "[9007199254740992,9007199254740992]", 0, 4) + "}", 4,
                 {"'a'", "more than"});
  std::string long_header = safetensors("{}", 0);
  const uint64_t length = uint64_t(1) << 60;
  std::memcpy(long_header.data(), &length, 8);
  expect_error([&] { from_safetensors(long_header, "w"); }, {"a header of", "only 2 more"});
}

// Older files of GPT-2 have masks of bytes.
TEST(Safetensors, MasksOfBytesAreWholeNumbers) {
  const std::string header =
      "{" + entry("u", "U8", "[1,3]", 0, 3) + "," + entry("b", "BOOL", "[2]", 3, 5) + "}";
  std::string bytes = safetensors(header, 5);
  bytes.replace(8 + header.size(), 5, std::string("\x01\x00\xff\x00\x01", 5));
  const Weights all = from_safetensors(bytes, "w");
  EXPECT_EQ(std::get<1>(all.find("u")->values), (std::vector<int64_t>{1, 0, 255}));
  EXPECT_EQ(std::get<1>(all.find("b")->values), (std::vector<int64_t>{0, 1}));
}

// Numbers of float16 and bfloat16 are float32 numbers; those of float64 are rounded.
TEST(Safetensors, WeightsOfOtherPrecisionsBecomeFloat32) {
  const std::string header = "{" + entry("d", "F64", "[2]", 0, 16) + "," +
                             entry("h", "F16", "[2,4]", 16, 32) + "," + entry("b", "BF16", "[3]", 32, 38) +
                             "}";
  std::string bytes = safetensors(header, 38);
  const auto put = [&](size_t at, const auto& values) {
    std::memcpy(bytes.data() + 8 + header.size() + at, values.data(), sizeof values);
  };
  put(0, std::array{1. / 3, -1e300});
  put(16, std::array<uint16_t, 8>{0x3c00, 0xc000, 0x3555, 0x7bff, 0x0001, 0x83ff, 0xfc00, 0x8000});
  put(32, std::array<uint16_t, 3>{0x3f80, 0xc049, 0x7f80});
  const Weights all = from_safetensors(bytes, "w");
  const auto values = [&](const char* name) { return std::get<0>(all.find(name)->values); };
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(values("d"), (std::vector<float>{float(1. / 3), -inf}));
  EXPECT_EQ(values("h"),
            (std::vector<float>{1, -2, 0x1.554p-2f, 65504, 0x1p-24f, -1023 * 0x1p-24f, -inf, -0.0f}));
  EXPECT_EQ(values("b"), (std::vector<float>{1, -3.140625f, inf}));
  EXPECT_EQ(all.find("h")->shape, (std::vector<int64_t>{2, 4}));
}

TEST(Weights, OfSeveralFilesAreReadByTheirIndex) {
  const TemporaryFolder folder;
  const std::string index = folder.str() + "/model.safetensors.index.json";
  const auto write = [&](const std::string& name, const std::string& tensor, float value) {
    Weights one;
    one.add({tensor, {2}, std::vector<float>{value, value}});
    write_weights(folder.str() + "/" + name, one, WeightFormat::safetensors);
  };
  const auto listed = [&](const std::string& map) {
    write_file(index, "{\"metadata\": {\"total_size\": 16}, \"weight_map\": " + map + "}");
    return read_weights(index);
  };
  write("1", "a.weight", 1), write("2", "b.weight", 2);
  const Weights both = listed(R"({"a.weight": "1", "b.weight": "2"})");
  EXPECT_EQ(both.size(), 2u);
  EXPECT_EQ(std::get<0>(both.find("b.weight")->values)[1], 2);
  expect_error([&] { listed(R"({"a.weight": "2"})"); }, {"/2 has the tensor 'b.weight'", "does not say so"});
  expect_error([&] { listed(R"({"a.weight": "1", "b.weight": "1"})"); }, {"/1 has 1 tensors", "lists 2"});
  expect_error([&] { listed(R"({"a.weight": "../1"})"); }, {"'a.weight'", "no name of a file"});
  expect_error([&] { listed(R"({"a.weight": "3"})"); }, {"/3"});
  expect_error([&] { listed("[]"); }, {"weight_map", "object"});
}

// A recording has float64 and int32 as well, which are no weights.
TEST(Safetensors, NumbersOfEveryTypeAreRead) {
  const std::string header = "{" + entry("d", "F64", "[1,2]", 0, 16) + "," + entry("f", "F32", "[]", 16, 20) +
                             "," + entry("i", "I32", "[1]", 20, 24) + "," + entry("l", "I64", "[1]", 24, 32) +
                             "," + entry("none", "F64", "[0]", 32, 32) + "}";
  std::string bytes = safetensors(header, 32);
  const auto put = [&](size_t at, const auto& value) {
    std::memcpy(bytes.data() + 8 + header.size() + at, &value, sizeof value);
  };
  put(0, 1. / 3), put(8, -2.), put(16, 0.1f), put(20, int32_t(-7)), put(24, int64_t(1) << 40);
  const std::vector<NamedNumbers> all = numbers_from_safetensors(bytes, "w");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].values, (std::vector<double>{1. / 3, -2}));
  EXPECT_EQ(all[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(all[1].values, std::vector<double>{0.1f});
  EXPECT_TRUE(all[1].shape.empty());
  EXPECT_EQ(all[2].values, std::vector<double>{-7});
  EXPECT_EQ(all[3].values, std::vector<double>{double(int64_t(1) << 40)});
  EXPECT_TRUE(all[4].values.empty());

  const auto refused = [](const std::string& text, size_t data, std::initializer_list<std::string> words) {
    expect_error([&] { numbers_from_safetensors(safetensors(text, data), "w"); }, words);
  };
  refused("{" + entry("a", "BF16", "[2]", 0, 4) + "}", 4, {"'a' is of type BF16", "F64"});
  refused("{" + entry("a", "F64", "[2]", 0, 8) + "}", 8, {"'a' of 2 takes 16 bytes, but the file has 8"});
  refused("{" + entry("a", "F64", "[9007199254740992,9007199254740992]", 0, 8) + "}", 8,
          {"'a'", "has 8 for"});
  // An extent of 0 behind a product that overflows is no way around it.
  refused("{" + entry("a", "F64", "[9007199254740992,9007199254740992,0]", 0, 8) + "}", 8, {"'a'"});
}

TEST(Safetensors, TensorsAreAligned) {
  const std::string bytes = to_safetensors(examples());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["__metadata__"]["format"], "pt");
  for (const auto& [name, fields] : header.items()) {
    if (name == "__metadata__") continue;
    EXPECT_EQ(int(fields["data_offsets"][0]) % (fields["dtype"] == "I64" ? 8 : 4), 0) << name;
  }
}

}  // namespace
}  // namespace antichain
