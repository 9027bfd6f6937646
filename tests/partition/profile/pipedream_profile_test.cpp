// These tests say what is read of PipeDream's graph.txt, what does not matter (the order of lines), and what
// is refused.
#include "partition/profile/pipedream_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <random>
#include <sstream>

#include "partition/profile/decimal.h"
#include "partition/profile/natural_order.h"
#include "partition/profile/pipedream_flops.h"
#include "partition/profile/read_profile.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

std::string node(const std::string& id, const std::string& description = "ReLU(inplace)",
                 const std::string& forward = "0.500", const std::string& backward = "1.000",
                 const std::string& activation = "400.000", const std::string& parameters = "0.000") {
  return fmt::format(
      "{} -- {} -- forward_compute_time={}, backward_compute_time={}, activation_size={}, "
      "parameter_size={}\n",
      id, description, forward, backward, activation, parameters);
}

std::string edge(const std::string& from, const std::string& to) { return "\t" + from + " -- " + to + "\n"; }

std::string in_line(const std::string& id) {
  return fmt::format("-- ReLU -- {}forward_compute_time=1.0, backward_compute_time=1.0", id);
}

Profile read(const std::string& text) { return profile_from_pipedream(text, "net.txt"); }

std::vector<std::string> names(const Profile& profile) {
  std::vector<std::string> names;
  for (const ProfileNode& n : profile.nodes) names.push_back(n.name);
  return names;
}

int64_t ns(double seconds) { return std::llround(seconds * 1e9); }

// Two sources of data, a branch that joins again, a sink nobody needs, nodes out of order.
std::string sample_graph() {
  return node("node10", "Linear(in_features=25, out_features=10, bias=True)", "1.5", "2.25", "[40.0; 8.0; 2]",
              "1040.0") +
         edge("node2", "node10") + node("node11", "__getitem__(0)") +
         node("node1", "Input0", "635.902", "0.000", "1200.000", "0.000") +
         node("node2", "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), bias=False)", "22.316", "6.405",
              "400.000", "432.000") +
         edge("node10", "node11") + edge("node1", "node2") + node("node9", "Input1") +
         edge("node9", "node10") + edge("node3", "node10") + node("node3") + edge("node2", "node3");
}

TEST(PipeDreamProfile, ReadsWhatTheFileSays) {
  const Profile profile = profile_from_pipedream(sample_graph(), "some/folder/tiny.txt");
  EXPECT_EQ(profile.model, "tiny");
  EXPECT_TRUE(profile.ids_are_names);
  EXPECT_EQ(profile.microbatch, 0);
  EXPECT_EQ(profile.graph_hash.size(), 16u);
  EXPECT_EQ(names(profile), (std::vector<std::string>{"node1", "node2", "node3", "node9", "node10"}));
  const ProfileNode &conv = profile.nodes[1], &linear = profile.nodes[4];
  EXPECT_EQ(conv.op, "Conv2d");
  EXPECT_EQ(conv.role, Role::compute);
  EXPECT_TRUE(conv.needs_gradient);
  EXPECT_TRUE(conv.cost.keeps_output);
  EXPECT_EQ(conv.inputs, std::vector<int>({0}));
  EXPECT_EQ(ns(conv.cost.forward_s), 22316000);
  EXPECT_EQ(ns(conv.cost.backward_s()), 6405000);
  EXPECT_EQ(conv.cost.output_bytes, 400);
  EXPECT_EQ(conv.cost.param_bytes, 432);
  EXPECT_EQ(conv.cost.stash_bytes, 0);
  EXPECT_EQ(conv.cost.flops, 100 * 2 * 27);
  EXPECT_EQ(linear.inputs, std::vector<int>({1, 2, 3}));
  EXPECT_EQ(linear.cost.output_bytes, 50);  // a list is summed
}

TEST(PipeDreamProfile, PartOfABackwardTimeIsTheWeightHalfs) {
  const std::string text = node("a", "Linear", "1", "2.25", "4", "10000") +
                           node("b", "Linear", "1", "2.25", "4", "10001") + edge("a", "b");
  for (const double share : {0.5, 0.25, 0., 1.}) {
    const Profile profile = profile_from_pipedream(text, "net.txt", share);
    const NodeCost &few = profile.nodes[0].cost, &many = profile.nodes[1].cost;
    EXPECT_EQ(few.backward_weight_s, 0) << "biases and scales are small";
    EXPECT_EQ(ns(many.backward_weight_s), std::llround(2'250'000 * share));
    EXPECT_EQ(ns(many.backward_s()), 2'250'000);
  }
  EXPECT_EQ(ns(read(text).nodes[1].cost.backward_weight_s), 1'125'000) << "a half, unless said";
}

TEST(PipeDreamProfile, DataLoadingIsNoCompute) {
  const Profile profile = read(sample_graph());
  for (int n : {0, 3}) {
    EXPECT_EQ(profile.nodes[n].role, Role::input);
    EXPECT_EQ(profile.nodes[n].cost.compute_s(), 0);
    EXPECT_FALSE(profile.nodes[n].needs_gradient);
  }
  EXPECT_EQ(profile.nodes[0].cost.output_bytes, 1200);
  // Only a source: a node that is fed computes, whatever it is called.
  const Profile fed = read(node("a") + node("b", "Input") + edge("a", "b"));
  EXPECT_EQ(fed.nodes[1].role, Role::compute);
  EXPECT_EQ(ns(fed.nodes[1].cost.forward_s), 500000);
}

TEST(PipeDreamProfile, OnlyUnusedItemsAreLeftOutAndOnlyOnce) {
  const std::string chain =
      node("a") + node("b", "__getitem__(0)") + node("c", "__getitem__(1)") + edge("a", "b") + edge("b", "c");
  EXPECT_EQ(names(read(chain)), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(read(chain + node("d") + edge("c", "d"))), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(PipeDreamProfile, TheOrderOfLinesMeansNothing) {
  std::vector<std::string> lines;
  std::istringstream text(sample_graph());
  for (std::string line; std::getline(text, line);) lines.push_back(line + "\n");
  const std::string expected = to_json(read(sample_graph()));
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    for (size_t i = lines.size() - 1; i > 0; --i) std::swap(lines[i], lines[random() % (i + 1)]);
    ASSERT_EQ(to_json(read(fmt::format("{}", fmt::join(lines, "")))), expected);
  }
}

TEST(PipeDreamProfile, TheSmallestReadyIdComesFirst) {
  // 10 -> 2 and 3 free: 3 before 10 before 2.
  EXPECT_EQ(names(read(node("n10") + node("n2") + node("n3") + edge("n10", "n2"))),
            (std::vector<std::string>{"n3", "n10", "n2"}));
}

TEST(PipeDreamProfile, FieldsComeInAnyOrderAndStageIdsAreIgnored) {
  const std::string usual = node("a");
  const std::string other =
      "a -- ReLU(inplace) -- parameter_size=0.0, activation_size=400, backward_compute_time=1, "
      "forward_compute_time=0.5 -- stage_id=3\r\n\n";
  EXPECT_EQ(to_json(read(other)), to_json(read(usual)));
}

TEST(PipeDreamProfile, TwoEdgesAlikeAreOne) {
  const std::string text = node("a") + node("b") + edge("a", "b");
  EXPECT_EQ(to_json(read(text + edge("a", "b"))), to_json(read(text)));
}

TEST(PipeDreamProfile, TheHashSeesEveryPriceAndEdge) {
  const std::string usual = node("a") + node("b");
  const std::vector<std::string> others = {
      node("a") + node("c"),
      node("a") + node("b", "ReLU"),
      node("a") + node("b", "ReLU(inplace)", "0.501"),
      node("a") + node("b", "ReLU(inplace)", "0.500", "1.001"),
      node("a") + node("b", "ReLU(inplace)", "0.500", "1.000", "401.000"),
      node("a") + node("b", "ReLU(inplace)", "0.500", "1.000", "400.000", "1.000"),
      usual + edge("a", "b"),
  };
  for (const std::string& other : others) EXPECT_NE(read(other).graph_hash, read(usual).graph_hash) << other;
  EXPECT_EQ(profile_from_pipedream(usual, "other.txt").graph_hash, read(usual).graph_hash);
}

TEST(PipeDreamProfile, TheModelIsNamedLikeTheFileOrItsFolder) {
  const auto model = [](const std::string& origin) {
    return profile_from_pipedream(node("a"), origin).model;
  };
  EXPECT_EQ(model("/profiles/vgg16.txt"), "vgg16");
  EXPECT_EQ(model("vgg16.txt"), "vgg16");
  EXPECT_EQ(model("profiles/vgg16/graph.txt"), "vgg16");
  EXPECT_EQ(model("graph.txt"), "graph");
  EXPECT_EQ(model("/graph.txt"), "graph");
  EXPECT_EQ(model("../graph.txt"), "graph");
  EXPECT_EQ(model("resnet18"), "resnet18");
}

TEST(PipeDreamProfile, SurvivesAsProfileJson) {
  const std::string json = to_json(read(sample_graph()));
  EXPECT_EQ(to_json(read_profile(json, "p")), json);
  EXPECT_EQ(to_json(read_profile("\n  " + json, "p")), json);
  EXPECT_EQ(to_json(read_profile(sample_graph(), "net.txt")), json);
}

TEST(PipeDreamProfile, AChainOf100000NodesOverflowsNothing) {
  std::string text;
  for (int n = 0; n < 100'000; ++n)
    text += node(fmt::format("node{}", n)) +
            (n ? edge(fmt::format("node{}", n - 1), fmt::format("node{}", n)) : "");
  const Profile profile = read(text);
  ASSERT_EQ(profile.nodes.size(), 100'000u);
  EXPECT_EQ(profile.nodes[99'999].name, "node99999");
}

struct Refused {
  const char* name;
  std::string text;
  std::vector<std::string> words;  // that the sentence holds
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class PipeDreamRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(PipeDreamRefuses, WithASentenceAndALine) {
  const std::string sentence = error_of([&] { read(GetParam().text); });
  for (const std::string& word : GetParam().words) expect_has(sentence, word);
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  EXPECT_LT(sentence.size(), 300u);
}

const std::string a = node("a"), b = node("b"), c = node("c");

INSTANTIATE_TEST_SUITE_P(
    Files, PipeDreamRefuses,
    ::testing::Values(
        Refused{"nothing", "", {"net.txt:1: ", "there is no node"}},
        Refused{"only_blank_lines", "\n\n", {"there is no node"}},
        Refused{"only_edges", edge("a", "b"), {"there is no node"}},
        Refused{"cut_off_after_the_id", a + "b", {"net.txt:2: ", "\"b\" is no node"}},
        Refused{
            "cut_off_after_the_description", a + "b -- ReLU", {"net.txt:2: ", "perhaps the line is cut off"}},
        Refused{"cut_off_in_a_field_name",
                a + "b -- ReLU -- forward_comp",
                {"net.txt:2: ", "\"forward_comp\" is no field"}},
        Refused{"cut_off_after_a_field",
                a + "b -- ReLU -- forward_compute_time=1.0",
                {"net.txt:2: ", "b has no backward_compute_time"}},
        Refused{"cut_off_before_a_number",
                a + "b -- ReLU -- forward_compute_time=",
                {"net.txt:2: ", "forward_compute_time is \"\", which is no number"}},
        Refused{"cut_off_in_a_list",
                node("a", "LSTM", "1", "1", "[1; 2"),
                {"net.txt:1: ", "\"[1; 2\" has no end"}},
        Refused{"cut_off_edge", a + b + "\ta --", {"net.txt:3: ", "\"a --\" is no edge"}},
        Refused{"edge_of_three", a + b + "\ta -- b -- a\n", {"net.txt:3: ", "is no edge"}},
        Refused{
            "no_description", "a --  -- forward_compute_time=1\n", {"net.txt:1: ", "a has no description"}},
        Refused{"unknown_field",
                "a " + in_line("colour=1.0, "),
                {"net.txt:1: ", "\"colour=1.0\" is no field of a node; known are forward_compute_time"}},
        Refused{"field_twice",
                "a " + in_line("forward_compute_time=1.0, "),
                {"net.txt:1: ", "a has forward_compute_time twice"}},
        Refused{"no_number",
                node("a", "ReLU", "fast"),
                {"net.txt:1: ", "forward_compute_time is \"fast\", which is no number"}},
        Refused{"trailing_letters", node("a", "ReLU", "1.0ms"), {"\"1.0ms\", which is no number"}},
        Refused{"hexadecimal", node("a", "ReLU", "0x10"), {"which is no number"}},
        Refused{"not_a_number", node("a", "ReLU", "nan"), {"net.txt:1: ", "\"nan\", which is no number"}},
        Refused{"infinite",
                node("a", "ReLU", "1", "inf"),
                {"net.txt:1: ", "backward_compute_time is \"inf\", which is no number"}},
        Refused{"negative_time",
                a + node("b", "ReLU", "1", "-0.001"),
                {"net.txt:2: ", "backward_compute_time is -0.001, which is negative"}},
        Refused{
            "negative_size", node("a", "ReLU", "1", "1", "-4"), {"activation_size is -4, which is negative"}},
        Refused{"negative_size_in_a_list",
                node("a", "ReLU", "1", "1", "[4; -4]"),
                {"activation_size is -4, which is negative"}},
        Refused{
            "empty_list", node("a", "ReLU", "1", "1", "[]"), {"activation_size is \"\", which is no number"}},
        Refused{
            "time_too_long", node("a", "ReLU", "1e12"), {"forward_compute_time is 1e12, more than 13 days"}},
        Refused{"size_too_large",
                node("a", "ReLU", "1", "1", "1e300"),
                {"activation_size is 1e300, more than 1125899906842624 bytes"}},
        Refused{"list_too_large",
                node("a", "ReLU", "1", "1", "[1e15; 1e15]"),
                {"[1e15; 1e15] adds up to more than"}},
        Refused{"sizes_too_large_to_add",
                node("a", "ReLU", "1", "1", "1e15") + node("b", "ReLU", "1", "1", "1e15"),
                {"net.txt:2: ",
                 "activation_size of b takes the sum over all nodes beyond 1125899906842624 bytes"}},
        Refused{"weights_too_large_to_add",
                node("a", "ReLU", "1", "1", "1", "1e15") + node("b", "ReLU", "1", "1", "1", "1e15"),
                {"net.txt:2: ", "parameter_size of b"}},
        Refused{"times_too_long_to_add",
                node("a", "ReLU", "1e9", "1e9"),
                {"net.txt:1: ", "backward_compute_time of a takes the sum", "13 days"}},
        Refused{"stage_id_that_is_no_number",
                "a -- ReLU -- forward_compute_time=1, backward_compute_time=1, activation_size=1, "
                "parameter_size=1 -- stage_id=first",
                {"stage_id is \"first\""}},
        Refused{"id_twice", a + b + a, {"net.txt:3: ", "the id a is taken by line 1"}},
        Refused{"id_with_a_blank", node("a b"), {"\"a b\" is no id"}},
        Refused{"id_with_a_comma", node("a,b"), {"\"a,b\" is no id"}},
        Refused{"edge_to_nowhere", a + edge("a", "z"), {"net.txt:2: ", "the edge a -- z needs a node z"}},
        Refused{"edge_from_nowhere", edge("z", "a") + a, {"net.txt:1: ", "the edge z -- a needs a node z"}},
        Refused{"edge_to_itself", a + edge("a", "a"), {"net.txt:2: ", "a uses itself"}},
        Refused{
            "cycle_of_two", a + b + edge("a", "b") + edge("b", "a"), {"net.txt:1: ", "a lies on a cycle"}},
        Refused{"cycle_behind_others",
                node("x") + c + b + a + edge("x", "a") + edge("b", "c") + edge("c", "b") + edge("c", "a"),
                {"net.txt:2: ", "c lies on a cycle"}},
        Refused{"spaces_for_a_tab", a + "  a -- b\n", {"net.txt:2: ", "the line starts with a space"}},
        Refused{
            "other_bytes", a + "b -- \xff\x80 -- x\n", {"net.txt:2: ", "character 6 is no printable ASCII"}},
        Refused{
            "a_zero_byte", a + std::string(1, '\0'), {"net.txt:2: ", "character 1 is no printable ASCII"}},
        Refused{"another_kind_of_file", "[1, 2]", {"net.txt:1: ", "\"[1, 2]\" is no node"}},
        Refused{"a_very_long_line", std::string(100000, 'x'), {"is no node"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(PipeDreamProfile, NamesANodeOnTheCycleAndNoneBehindIt) {
  // a waits for the cycle b -> c -> b, too, but lies behind it.
  const std::string sentence =
      error_of([] { read(a + b + c + edge("b", "c") + edge("c", "b") + edge("c", "a")); });
  EXPECT_TRUE(sentence.find("b lies") != std::string::npos || sentence.find("c lies") != std::string::npos)
      << sentence;
}

TEST(PipeDreamProfile, AFileCutOffAnywhereIsReadOrRefused) {
  const std::string text = sample_graph();
  for (size_t length = 0; length < text.size(); ++length) {
    try {
      read(text.substr(0, length));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("net.txt:"), std::string::npos);
    }
  }
}

TEST(Decimal, IsExactAndRoundedOnce) {
  const auto nanoseconds = [](const char* ms) { return scaled(*decimal(ms), 6, int64_t(1) << 50); };
  EXPECT_EQ(nanoseconds("0.539"), 539000);
  EXPECT_EQ(nanoseconds("635.902"), 635902000);
  EXPECT_EQ(nanoseconds("1"), 1000000);
  EXPECT_EQ(nanoseconds(".5"), 500000);
  EXPECT_EQ(nanoseconds("5."), 5000000);
  EXPECT_EQ(nanoseconds("0.0000005"), 1);  // half a nanosecond: up
  EXPECT_EQ(nanoseconds("0.00000049999999999999999999999"), 0);
  EXPECT_EQ(nanoseconds("0.0000014999999999999999999"), 1);
  EXPECT_EQ(nanoseconds("1e-6"), 1);
  EXPECT_EQ(nanoseconds("1E+2"), 100000000);
  EXPECT_EQ(nanoseconds("1e-999"), 0);
  EXPECT_EQ(nanoseconds("-0.000"), 0);
  EXPECT_EQ(nanoseconds("000000000000000000000000000000.001"), 1000);
  EXPECT_EQ(nanoseconds("1125899906.842624"), int64_t(1) << 50);
  EXPECT_EQ(nanoseconds("1125899906.8426245"), std::nullopt);
  EXPECT_EQ(nanoseconds("1125899906.842625"), std::nullopt);
  EXPECT_EQ(nanoseconds("1e999"), std::nullopt);
  EXPECT_EQ(scaled(*decimal("0"), 900, 5), 0);
  for (const char* text : {"",    "-",  ".",  "e5", "1e",  "1e+", "1e+-5", "1e5.0", "1e1000", "1e99999999999",
                           "--1", "+1", " 1", "1 ", "1,0", "nan", "inf",   "-inf",  "0x1",    "1.2.3"})
    EXPECT_EQ(decimal(text), std::nullopt) << text;
}

TEST(NaturalOrder, Counts) {
  const std::vector<std::string> ordered = {
      "",      "1",      "02",    "2",     "10",     "a",      "a1",   "a1b",
      "a01b2", "a1b3",   "a9",    "a10",   "a10b",   "a0100",  "a100", "a99999999999999999999999",
      "ab",    "node01", "node1", "node2", "node10", "node10a"};
  for (size_t i = 0; i < ordered.size(); ++i)
    for (size_t j = 0; j < ordered.size(); ++j)
      EXPECT_EQ(natural_less(ordered[i], ordered[j]), i < j) << ordered[i] << " and " << ordered[j];
}

TEST(PipeDreamFlops, CountAsOurOperatorsDo) {
  const auto flops = [](const char* description) { return pipedream_flops(description, 100); };
  EXPECT_EQ(flops("Conv2d(64, 192, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))"),
            100 * (2 * 64 * 25 + 1));
  EXPECT_EQ(flops("Conv2d(64, 192, kernel_size=(1, 7), stride=(1, 1), bias=False)"), 100 * 2 * 64 * 7);
  EXPECT_EQ(flops("Conv2d(64, 64, kernel_size=(3, 3), stride=(1, 1), groups=32, bias=False)"),
            100 * 2 * 2 * 9);
  EXPECT_EQ(flops("Linear(in_features=9216, out_features=4096, bias=True)"), 100 * (2 * 9216 + 1));
  EXPECT_EQ(flops("Linear(in_features=9216, out_features=4096, bias=False)"), 100 * 2 * 9216);
  EXPECT_EQ(flops("MaxPool2d(kernel_size=3, stride=2, padding=0, dilation=1, ceil_mode=False)"), 900);
  EXPECT_EQ(flops("AvgPool2d(kernel_size=(2, 3))"), 600);
  EXPECT_EQ(flops("BatchNorm2d(64, eps=1e-05)"), 800);
  EXPECT_EQ(flops("ReLU(inplace)"), 100);
  EXPECT_EQ(flops("Add"), 100);
  EXPECT_EQ(flops("Concat(1)"), 0);
  EXPECT_EQ(flops("View(9216)"), 0);
  EXPECT_EQ(flops("Size(0)"), 0);
  // What we cannot read counts one FLOP an element.
  for (const char* description :
       {"Attention", "Conv2d", "Conv2d(", "Conv2d(x, 3)", "Conv2d(3, 4, kernel_size=(3)",
        "Conv2d(3, 4, kernel_size=(", "Linear(features=3)", "MaxPool2d(kernel_size=)",
        "Conv2d(99999999999, 4, kernel_size=(3, 3))", "Conv2d(-3, 4, kernel_size=(3, 3))", ""})
    EXPECT_EQ(flops(description), 100) << description;
}

}  // namespace
}  // namespace antichain
