// Links within the documents lead to files that are there, and to headings that these have, named as GitHub
// names them: in lower case, without punctuation, and with hyphens for blanks.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/repository/repository.h"

namespace fs = std::filesystem;

namespace antichain {
namespace {

const std::regex link(R"(\]\(([^)#\s]*)(?:#([^)\s]*))?\))");

std::string name_of_heading(const std::string& text) {
  std::string name;
  for (const char c : std::regex_replace(text, std::regex(R"(\]\([^)]*\))"), ""))
    if (c == ' ' || c == '-')
      name += '-';
    else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80))
      name += char(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::set<std::string> headings_of(const fs::path& document) {
  std::set<std::string> names;
  std::ifstream in(document);
  bool code = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) code = !code;
    if (!code && line.starts_with("#")) names.insert(name_of_heading(line.substr(line.find(' ') + 1)));
  }
  return names;
}

int check_links(const fs::path& document) {
  std::ostringstream text;
  text << std::ifstream(document).rdbuf();
  const std::string all = text.str();
  int links = 0;
  for (std::sregex_iterator at(all.begin(), all.end(), link), end; at != end; ++at) {
    const std::string file = (*at)[1], heading = (*at)[2];
    if (file.starts_with("http")) continue;
    links += 1;
    const fs::path to = file.empty() ? document : document.parent_path() / file;
    EXPECT_TRUE(fs::exists(to)) << document << ": " << (*at)[0];
    if (heading.empty() || to.extension() != ".md") continue;
    EXPECT_TRUE(headings_of(to).contains(heading)) << document << ": " << (*at)[0];
  }
  return links;
}

TEST(Links, LeadToWhatIsThere) {
  int links = 0;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.path().extension() == ".md") links += check_links(entry.path());
  for (const char* folder : {"app", "docs", "examples", "layers", "models", "packaging", "pipeline", "slurm"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".md") links += check_links(entry.path());
  EXPECT_GT(links, 150) << "the documents were not found below " << root;
}

}  // namespace
}  // namespace antichain
