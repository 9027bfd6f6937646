// Checks that a call throws an antichain::Error whose sentence holds every one of some words.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "framework/error.h"

namespace antichain {

template <class Call>
void expect_error(Call call, std::initializer_list<std::string> words) {
  try {
    call();
    ADD_FAILURE() << "no Error was thrown";
  } catch (const Error& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << word << "' is not in: " << error.what();
    }
  }
}

}  // namespace antichain
