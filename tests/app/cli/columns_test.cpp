// Tables fit a terminal of eighty columns, as help does (reference_test.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/app/small_job.h"

namespace antichain {
namespace {

using Columns = SmallJob;

TEST_F(Columns, TablesFitEightyColumns) {
  for (const std::string words :
       {"info", "info --model squeezenet --batch 128", "plan --profile p.json --stages 3",
        "plan --profile p.json --stages 3 --memory-bytes 900000000",
        "plan --profile p.json --stages 3 --compare",
        "simulate --profile p.json --stages 4 --microbatches 20",
        "train --profile p.json --data-dir data --local 2 --steps 2 --model resnet20 --batch 16 "
        "--microbatches 4"}) {
    const ProgramRun result = run(words);
    EXPECT_EQ(result.code, 0) << words << result.err;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("epoch ")) continue;  // a line of progress has all that there is to say
      const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(characters, 80) << words << ": " << line;
    }
  }
}

}  // namespace
}  // namespace antichain
