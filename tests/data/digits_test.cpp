// Tests the file of handwritten digits: packed or not, it is whole or it is refused.
#include "data/digits.h"

#include <gtest/gtest.h>

#include <fstream>

#include "data/obtain.h"
#include "tests/data/image_of.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// Line i has i % 17, then zeros, and the digit i % 10.
std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += std::to_string(i % 17);
    for (int p = 1; p < 64; ++p) text += ",0";
    text += "," + std::to_string(i % 10) + "\n";
  }
  return text;
}

class DigitsFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text, const std::string& name = "digits.csv") const {
    const std::string file = folder_.str() + "/" + name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  const TemporaryFolder folder_;
};

TEST_F(DigitsFile, IsReadPackedAndUnpacked) {
  const std::string plain = write(lines(1797));
  ASSERT_EQ(run_command({"gzip", "--keep", plain}).status, 0);
  for (const std::string& file : {plain, plain + ".gz"}) {
    const ImageSplits sets = read_digits(file);
    EXPECT_EQ(sets.train->size(), 1437);
    EXPECT_EQ(sets.test->size(), 360);
    EXPECT_EQ(sets.train->image_shape(), (Shape{1, 8, 8}));
    EXPECT_EQ(sets.train->label(1234), 4);
    EXPECT_EQ(sets.test->label(0), 7);
    EXPECT_EQ(image_of(*sets.train, 16)[0], 255);
    EXPECT_EQ(image_of(*sets.train, 8)[0], 128);
    EXPECT_EQ(image_of(*sets.train, 1)[0], 16);
  }
}

TEST_F(DigitsFile, ThatIsNotWholeIsRefused) {
  const std::string whole = lines(1797), line = lines(1);
  const auto changed = [&](const std::string& first) { return first + whole.substr(line.size()); };
  const struct {
    std::string text, why;
  } cases[] = {{lines(1796), "has 1796 images"},
               {whole + line, "has 1798 images"},
               {"", "has 0 images"},
               {changed("17" + line.substr(1)), "line 1"},
               {changed("-1" + line.substr(1)), "line 1"},
               {changed("0," + line), "line 1"},
               {changed(line.substr(2)), "line 1"},
               {changed("x\n"), "line 1"},
               {whole + "\n", "line 1798"},
               {"\x1f\x8bnonsense", "damaged"}};
  for (const auto& [text, why] : cases) {
    const std::string file = write(text);
    expect_error([&] { read_digits(file); }, {file, why, "scikit-learn"});
  }
  const std::string plain = write(whole);
  ASSERT_EQ(run_command({"gzip", plain}).status, 0);
  std::filesystem::resize_file(plain + ".gz", 500);
  expect_error([&] { read_digits(plain + ".gz"); }, {"cut off"});
  expect_error([&] { read_digits(folder_.str()); }, {"is a folder"});
}

}  // namespace
}  // namespace antichain
