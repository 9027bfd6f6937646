// Tests files that people edit: strict reading with the place of every mistake, whole-or-nothing writing.
#include "framework/json.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "framework/error.h"

namespace antichain {
namespace {

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, NamesTheLineOfASyntaxError) {
  EXPECT_NE(error_of([] { parse_json("{\n\"a\": 1,\n\"b\" 2}", "plan.json"); }).find("plan.json:3"),
            std::string::npos);
  EXPECT_NE(error_of([] { parse_json("", "plan.json"); }).find("empty"), std::string::npos);
}

TEST(Json, RefusesNumbersNoDoubleHolds) {
  EXPECT_NE(error_of([] { parse_json("[1e999]", "f.json"); }).find("f.json: a number is too large"),
            std::string::npos);
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_NE(error_of([] { parse_json(R"({"a": {"b": 1, "b": 2}})", "f"); }).find("\"b\" stands twice"),
            std::string::npos);
  EXPECT_NO_THROW(parse_json(R"([{"a": 1}, {"a": 2}])", "f"));
}

TEST(Json, ReaderNamesThePathOfAWrongField) {
  const auto json = parse_json(
      R"({"stages": [{"nodes": [1, -2]}], "x": 1e300, "n": 3.5, "big": 18446744073709551615})", "f.json");
  JsonReader reader(json, "f.json");
  auto nodes = reader.at("stages").elements()[0].at("nodes").elements();
  EXPECT_EQ(nodes[0].integer(), 1);
  EXPECT_EQ(error_of([&] { nodes[1].integer(); }).find("f.json: stages[0].nodes[1]: -2"), 0u);
  EXPECT_NE(error_of([&] { reader.at("n").integer(); }).find("integer"), std::string::npos);
  EXPECT_NE(error_of([&] { reader.at("big").integer(); }).find("outside"), std::string::npos);
  EXPECT_NE(error_of([&] { reader.at("y"); }).find("\"y\" is missing"), std::string::npos);
  EXPECT_NE(error_of([&] { reader.done(); }).find("unknown field \"x\""), std::string::npos);
}

TEST(Files, AreReplacedWholeOrNotAtAll) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("antichain_json_test_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "a.json";
  write_file(file, "one");
  write_file(file, "two");
  EXPECT_EQ(read_file(file), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);  // no leftovers
  EXPECT_NE(error_of([&] { write_file(folder / "no" / "where", "x"); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(error_of([&] { read_file(folder / "b.json"); }).find("No such file"), std::string::npos);
  EXPECT_NE(error_of([&] { read_file(folder); }).find("is a folder"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace antichain
