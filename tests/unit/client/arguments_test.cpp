#include "client/command_line/arguments.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "client/command_line/error_report.hpp"

namespace kilokv::client {
namespace {

struct Parsed {
  int code = -1;  // -1: go on
  std::string error;
};

// A program with all kinds of values, as a person calls it.
class Program {
 public:
  Program() {
    add_version_flag(app_.get());
    app_->require_subcommand(1);
    CLI::App* list = add_subcommand(app_.get(), "list", "");
    list->add_option("--limit", limit)->transform(whole_number());
    list->add_option("--size", size)->transform(size_in_bytes(1, 1 << 20));
    list->add_option("--share", share)->transform(real_number(0, 1));
    list->add_option("--timeout", timeout_us)->transform(duration(1));
    list->add_option("--endpoint", address)->transform(endpoint());
    list->add_option("--color", color)->transform(one_of({"red", "blue"}));
    list->add_option("delta", delta)->transform(signed_number());
    list->add_option("--key", address)->excludes("--endpoint");
    list->add_flag("--all", all);
    list->add_flag("--wait", wait);
    CLI::App* show = add_subcommand(app_.get(), "show", "Show it");
    add_subcommand(show, "inside", "Show what is inside");
    add_help_command(app_.get());
  }

  Parsed run(std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    const auto code = parse_arguments(app_.get(), static_cast<int>(words.size()), words.data());
    out = testing::internal::GetCapturedStdout();
    return {code.value_or(-1), testing::internal::GetCapturedStderr()};
  }

  std::uint64_t limit = 0, size = 0;
  double share = 0;
  std::int64_t timeout_us = 0, delta = 0;
  std::string address, color, out, wait;
  bool all = false;

 private:
  const std::shared_ptr<CLI::App> app_ = make_app("", "program");
};

TEST(Arguments, ReadsEveryKind) {
  Program program;
  const Parsed parsed =
      program.run({"list", "--limit", "18446744073709551615", "--size", "4KiB", "--share", "0.5", "--timeout", "1.5s",
                   "--endpoint", "db:7070", "--color", "blue", "-9223372036854775808"});
  EXPECT_EQ(parsed.code, -1) << parsed.error;
  EXPECT_EQ(program.limit, 18'446'744'073'709'551'615u);
  EXPECT_EQ(program.size, 4096u);
  EXPECT_EQ(program.share, 0.5);
  EXPECT_EQ(program.timeout_us, 1'500'000);
  EXPECT_EQ(program.delta, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(program.address, "db:7070");
  EXPECT_EQ(program.color, "blue");
}

TEST(Arguments, LeadingZerosAreNotOctal) {
  Program program;
  EXPECT_EQ(program.run({"list", "--limit", "010"}).code, -1);
  EXPECT_EQ(program.limit, 10u);
}

TEST(Arguments, AWrongValueIsNamedAsTyped) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> cases = {
      {"--limit", {"-1", "99999999999999999999", "1.5", "0x10", "1e3", " 1", "", "+1", "many"}},
      {"--size", {"0", "5kb", "2MiB", "-1", "99999999999999999999GiB", "KiB"}},
      {"--share", {"-0.1", "1.1", "nan", "inf", "half", "0.5x"}},
      {"--timeout", {"5", "-5s", "0", "0s", "0.0000001s", "soon", "99999999999999999h"}},
      {"--endpoint", {"foo", ":1", "host:", "host:0", "host:65536", "host:-1", "host:7070x"}},
      {"--color", {"green", "", "RED"}},
  };
  for (const auto& [flag, values] : cases) {
    for (const char* value : values) {
      const Parsed parsed = Program().run({"list", flag, value});
      EXPECT_EQ(parsed.code, 2) << flag << value;
      EXPECT_EQ(parsed.error.find(std::string("program: ") + flag + ": \"" + value + "\" is not "), 0u) << parsed.error;
    }
  }
  EXPECT_NE(Program().run({"list", "9223372036854775808"}).error.find("delta: \"9223372036854775808\""),
            std::string::npos);
}

TEST(Arguments, AWrongValueIsToldTheUnits) {
  EXPECT_EQ(
      Program().run({"list", "--timeout", "5"}).error,
      "program: --timeout: \"5\" is not a duration: a number with us, ms, s, m or h, such as 500ms or 3s; at least "
      "1us\n");
  EXPECT_EQ(
      Program().run({"list", "--size", "2MiB"}).error,
      "program: --size: \"2MiB\" is not a size from 1B to 1MiB: a number with B, KiB, MiB or GiB, such as 1MiB, or "
      "a number of bytes\n");
}

TEST(Arguments, ADurationAfterAFlagThatNeedsNoValueNeedsItsUnit) {
  const std::string wanted =
      "program: --wait: \"5\" is not a duration: a number with us, ms, s, m or h, such as 500ms or 3s\n";
  EXPECT_EQ(Program().run({"list", "7", "--wait", "5"}).error, wanted);
  EXPECT_EQ(Program().run({"list", "7", "--wait", "5"}).code, 2);
  EXPECT_EQ(Program().run({"list", "7", "8", "--wait"}).error,
            "program: unexpected \"8\"; program list --help says what it takes\n");
}

TEST(Arguments, WhatNothingTakesIsNamed) {
  EXPECT_EQ(Program().run({"jump", "a"}).error, "program: unknown command \"jump\"; known here: list show help\n");
  EXPECT_EQ(Program().run({}).error, "program: a command is missing; known here: list show help\n");
  EXPECT_EQ(Program().run({"--foo"}).error, "program: unknown flag \"--foo\"; program --help lists the flags\n");
  EXPECT_EQ(Program().run({"show", "--foo"}).error,
            "program: unknown flag \"--foo\"; program show --help lists the flags\n");
  EXPECT_EQ(Program().run({"show", "me"}).error,
            "program: unexpected \"me\"; program show --help says what it takes\n");
  EXPECT_EQ(Program().run({"show", "me"}).code, 2);
}

TEST(Arguments, ANearMissIsSuggested) {
  EXPECT_EQ(Program().run({"lsit", "a"}).error,
            "program: unknown command \"lsit\"; did you mean \"list\"? Known here: list show help\n");
  EXPECT_EQ(Program().run({"list", "--limt", "5"}).error,
            "program: unknown flag \"--limt\"; did you mean \"--limit\"?\n");
  EXPECT_EQ(Program().run({"list", "--colour=red"}).error,
            "program: unknown flag \"--colour\"; did you mean \"--color\"?\n");
  EXPECT_EQ(Program().run({"list", "-limit", "5"}).error,
            "program: unknown flag \"-limit\"; did you mean \"--limit\"?\n");
  EXPECT_EQ(Program().run({"--limit", "5", "list"}).error,
            "program: unknown flag \"--limit\" before the command; write it after the command: program list --limit\n");
  EXPECT_EQ(Program().run({"--limit", "5"}).error,
            "program: unknown flag \"--limit\" here; write it after a command: program list --limit\n");
}

TEST(Arguments, HelpIsACommand) {
  const auto printed = [](std::vector<const char*> words) {
    Program program;
    const Parsed parsed = program.run(std::move(words));
    EXPECT_EQ(parsed.code, 0) << parsed.error;
    return program.out;
  };
  EXPECT_EQ(printed({"help"}), printed({"--help"}));
  EXPECT_EQ(printed({"help", "list"}), printed({"list", "--help"}));
  EXPECT_EQ(printed({"help", "show", "inside"}), printed({"show", "inside", "--help"}));
  EXPECT_NE(printed({"help", "show"}).find("Usage: program show"), std::string::npos);
  EXPECT_EQ(Program().run({"help", "shwo"}).error,
            "program: unknown command \"shwo\"; did you mean \"show\"? Known here: list show help\n");
  EXPECT_EQ(Program().run({"help", "list", "it"}).error, "program: program list has no commands of its own\n");
  EXPECT_EQ(Program().run({"help", "shwo"}).code, 2);
}

TEST(Arguments, WrongCountsAreToldInOurOwnWords) {
  EXPECT_EQ(Program().run({"list", "--limit"}).error, "program: --limit needs a value\n");
  EXPECT_EQ(Program().run({"list", "--limit=", "5"}).error, "program: --limit needs a value\n");
  EXPECT_EQ(Program().run({"list", "--limit", "1", "--limit", "2"}).error,
            "program: --limit is given 2 times: give it once\n");
  EXPECT_EQ(Program().run({"list", "--all=maybe"}).error,
            "program: --all takes no value: leave out the \"=\" and the text after it\n");
  EXPECT_EQ(Program().run({"list", "--key", "a", "--endpoint", "a:1"}).error,
            "program: --endpoint and --key exclude each other: give one of them\n");
}

TEST(Arguments, ADurationMayFollowAFlagThatNeedsNoValue) {
  const auto wait = [](std::vector<const char*> words) {
    Program program;
    const Parsed parsed = program.run(std::move(words));
    EXPECT_EQ(parsed.code, -1) << parsed.error;
    return program.wait + " " + std::to_string(program.delta);
  };
  EXPECT_EQ(wait({"list", "--wait", "5s"}), "5s 0");
  EXPECT_EQ(wait({"list", "--wait=5s", "7"}), "5s 7");
  EXPECT_EQ(wait({"list", "--wait", "7"}), "true 7");
  EXPECT_EQ(wait({"list", "--wait", "0"}), "true 0");
  EXPECT_EQ(wait({"list", "7", "--wait"}), "true 7");
}

TEST(Arguments, VersionIsPrinted) {
  Program program;
  EXPECT_EQ(program.run({"--version"}).code, 0);
  EXPECT_EQ(program.out.find("program "), 0u);
  EXPECT_NE(program.out.find("(commit "), std::string::npos);
}

TEST(Arguments, Durations) {
  EXPECT_EQ(parse_duration_us("500ms"), 500'000);
  EXPECT_EQ(parse_duration_us("3s"), 3'000'000);
  EXPECT_EQ(parse_duration_us("1.5s"), 1'500'000);
  EXPECT_EQ(parse_duration_us("7us"), 7);
  EXPECT_EQ(parse_duration_us("2m"), 120'000'000);
  EXPECT_EQ(parse_duration_us("1h"), 3'600'000'000);
  EXPECT_EQ(parse_duration_us("0"), 0);
  for (const char* bad :
       {"", "3", "s", "-1s", "-0s", "3 s", "3S", "1e3s", "nan", "inf", "3sec", "99999999999999999h"}) {
    EXPECT_FALSE(parse_duration_us(bad)) << bad;
  }
  for (const std::int64_t us : {0L, 1L, 1'500'000L, 60'000'000L, 7'200'000'000L}) {
    EXPECT_EQ(parse_duration_us(format_duration(us)), us);
  }
}

std::string reported(const Error& error) {
  testing::internal::CaptureStderr();
  report_error("program", "--timeout", error);
  return testing::internal::GetCapturedStderr();
}

TEST(ErrorReport, FullIsSaidOnlyWhereAKnobIsNamed) {
  Error error;
  error.code = ErrorCode::resource_exhausted;
  EXPECT_EQ(reported(error).find("full"), std::string::npos);
  error.setting = "--parked-max";
  EXPECT_NE(reported(error).find("to wait does not help: raise the setting"), std::string::npos);
  error.retry_after_us = 1000;
  EXPECT_NE(reported(error).find("the server is full: try again later"), std::string::npos);
  EXPECT_EQ(exit_code(error.code), ExitCode::unavailable);
}

TEST(ErrorReport, ATimeoutIsNamedWithItsValue) {
  Error error;
  error.code = ErrorCode::deadline_exceeded;
  error.message = "late";
  const auto told = [&error](const std::string& timeout) {
    testing::internal::CaptureStderr();
    report_error("program", "--patience", error, timeout);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(told("").find("  setting: --patience\n"), std::string::npos) << told("");
  EXPECT_NE(told("5s").find("  setting: --patience (now 5s)\n"), std::string::npos) << told("5s");
  error.setting = "--wait-timeout-max";
  EXPECT_NE(told("5s").find("  setting: --wait-timeout-max\n"), std::string::npos) << told("5s");
  error = {};
  error.code = ErrorCode::unavailable;
  EXPECT_NE(told("5s").find("a longer --patience (now 5s) waits"), std::string::npos) << told("5s");
}

TEST(ErrorReport, TheReasonOfTheServerHasALine) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.message = "too long";
  EXPECT_EQ(reported(error), "program: INVALID_ARGUMENT: too long\n");
  error.reason = "OUT_OF_RANGE";
  error.field = "then[0].key";
  EXPECT_EQ(reported(error),
            "program: INVALID_ARGUMENT: too long\n  reason: OUT_OF_RANGE (docs/errors.md)\n  field: then[0].key\n");
}

TEST(ErrorReport, WithoutAServerItSaysWhatToDo) {
  Error error;
  error.code = ErrorCode::unavailable;
  for (const char* told : {"start kilokvd there", "--endpoint", "KILOKV_ENDPOINT", "--wait-for-server", "--timeout"}) {
    EXPECT_NE(reported(error).find(told), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace kilokv::client
