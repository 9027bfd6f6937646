// Any bytes may be a settings file.
#include "app/cli/settings_file.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace antichain;
  return fuzz(data, size, [](const std::string& text) {
    for (const SettingsSection& section : parse_settings_file(text, "fuzz"))
      for (const Setting& setting : section.settings)
        if (setting.line < 1) fuzz_fail("a setting without a line:", setting.name);
  });
}
