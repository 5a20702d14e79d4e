#include "server/config.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "server/config_value.hpp"
#include "server/core/time_text.hpp"
#include "server/core/unit_text.hpp"

namespace kilokv::server {
namespace {

using Variables = std::map<std::string, std::string>;

Result<CommandLine> parse(std::vector<const char*> arguments, const Variables& variables = {}) {
  arguments.insert(arguments.begin(), "kilokvd");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data(), [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

// A configuration file that lives as long as the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "kilokvd-" + std::to_string(::getpid()) + ".toml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

void expect_error(const Result<CommandLine>& line, const std::string& part) {
  ASSERT_FALSE(line.ok());
  EXPECT_NE(line.status().message().find(part), std::string::npos) << line.status().message();
}

TEST(ConfigValue, Durations) {
  EXPECT_EQ(parse_duration("500us"), 500);
  EXPECT_EQ(parse_duration("3s"), 3000000);
  EXPECT_EQ(parse_duration("24h"), DurationUs{24} * 3600 * 1000000);
  EXPECT_EQ(parse_duration("0"), 0);
  for (const char* bad : {"", "5", "5x", "-1s", "1 s", "9223372036854775807s", "s"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
  EXPECT_EQ(format_duration(1500000), "1500ms");
  EXPECT_EQ(format_duration(60000000), "1m");
  EXPECT_EQ(format_duration(DurationUs{48} * 3600 * 1000000), "48h");
  EXPECT_EQ(format_duration(1500001), "1500001us");
  EXPECT_EQ(format_duration(-2000000), "-2s");
  EXPECT_EQ(format_duration(0), "0");
  EXPECT_EQ(format_utc(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(format_utc(1769860800500001), "2026-01-31T12:00:00.500001Z");
}

TEST(ConfigValue, Sizes) {
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  for (const char* bad : {"", "KiB", "1kb", "-1", "99999999999999TiB", "1.5MiB"}) EXPECT_FALSE(parse_size(bad)) << bad;
  EXPECT_EQ(format_size(std::uint64_t{4} << 20), "4MiB");
  EXPECT_EQ(format_size(1000), "1000B");
}

TEST(ConfigValue, Shares) {
  EXPECT_EQ(parse_share("0.25"), 0.25);
  EXPECT_EQ(parse_share("1"), 1.0);
  EXPECT_EQ(parse_share("0"), 0.0);
  for (const char* bad : {"", "-0.5", "+1", "1e-3", "nan", "inf", "0,5", "0.5 ", "5%", ".", "1.2.3"})
    EXPECT_FALSE(parse_share(bad)) << bad;
  EXPECT_EQ(format_share(0), "0");
  EXPECT_EQ(format_share(0.05), "0.05");
}

TEST(Config, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const ConfigFile file("batch-max-delay = \"2ms\"\nqueue-bytes-max = \"1MiB\"\nparked-max = 5\n");
  const Variables variables{{"KILOKV_BATCH_MAX_DELAY", "3ms"}, {"KILOKV_QUEUE_BYTES_MAX", "2MiB"}};
  const auto line = parse({"--config", file.path(), "--batch-max-delay", "4ms"}, variables);
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->options.database.batch_max_delay_us, 4000);
  EXPECT_EQ(line->options.database.queue_bytes_max, std::uint64_t{2} << 20);
  EXPECT_EQ(line->options.database.parked_max, 5u);
  EXPECT_EQ(line->options.database.batch_max_transactions, DatabaseOptions().batch_max_transactions);
}

TEST(Config, TheFileCanBeNamedByTheEnvironment) {
  const ConfigFile file("parked-max = 5\n");
  const auto line = parse({}, {{"KILOKV_CONFIG", file.path()}});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->options.database.parked_max, 5u);
}

TEST(Config, HowBatchesAreExecuted) {
  const auto defaults = parse({});
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->options.engine.strategy, "auto");
  EXPECT_EQ(defaults->options.engine.device, "auto");
  EXPECT_EQ(defaults->options.engine.threads, 0u);
  EXPECT_EQ(defaults->options.database.shadow_rate, 0);
  const ConfigFile file("threads = 3\nshadow-rate = \"0.25\"\nstrategy = \"serial\"\n");
  const auto line = parse({"--config", file.path()}, {{"KILOKV_DEVICE", "cpu"}});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->options.engine.strategy, "serial");
  EXPECT_EQ(line->options.engine.device, "cpu");
  EXPECT_EQ(line->options.engine.threads, 3u);
  EXPECT_EQ(line->options.database.shadow_rate, 0.25);
}

TEST(Config, EveryStrategyAndDeviceOfTheEngineIsTaken) {
  for (const std::string& strategy : engine::Engine::strategies()) {
    EXPECT_TRUE(parse({"--strategy", strategy.c_str()}).ok()) << strategy;
  }
  for (const std::string& device : engine::Engine::devices()) {
    EXPECT_TRUE(parse({"--device", device.c_str()}).ok()) << device;
  }
}

// What the log says of a start, in the order of --help. A text is in quotes, and nothing of it looks like another line.
TEST(Config, TheSettingsThatDifferFromTheirDefaultsAreKnown) {
  const auto defaults = parse({});
  ASSERT_TRUE(defaults.ok());
  EXPECT_TRUE(defaults->options.changed.empty());
  const ConfigFile file("batch-max-delay = \"2ms\"\nparked-max = 1000000\n");  // the second is the default
  const auto line =
      parse({"--config", file.path(), "--data-dir", "a b\n\"c\"", "--login", "on", "--shadow-rate", "0.5"},
            {{"KILOKV_QUEUE_BYTES_MAX", "1MiB"}, {"KILOKV_THREADS", "0"}});
  ASSERT_TRUE(line.ok()) << line.status().message();
  const std::vector<std::pair<std::string, std::string>> expected = {{"data-dir", "\"a b\\n\\\"c\\\"\""},
                                                                     {"shadow-rate", "0.5"},
                                                                     {"batch-max-delay", "2ms"},
                                                                     {"queue-bytes-max", "1MiB"},
                                                                     {"login", "on"}};
  EXPECT_EQ(line->options.changed, expected);
}

TEST(Config, ADatabaseCanBeMadeWithoutAStart) {
  const auto line = parse({"--create-database", "--create", "never"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->action, CommandLine::Action::create_database);
  EXPECT_EQ(line->options.storage.create, "never");
  EXPECT_EQ(parse({"--create-database", "--check-config"})->action, CommandLine::Action::check_config);
}

TEST(Config, WaitTimeoutLimitsRequestsToo) {
  const auto line = parse({"--wait-timeout-max", "5s"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->options.database.wait_timeout_us_max, 5000000);
  EXPECT_EQ(line->options.service.limits.wait_timeout_us_max, 5000000);
}

TEST(Config, ErrorsNameSourceValueAndWhatIsAllowed) {
  expect_error(parse({"--batch-max-delay", "5x"}), "--batch-max-delay is \"5x\": it must be a duration");
  expect_error(parse({}, {{"KILOKV_QUEUE_BYTES_MAX", "lots"}}),
               "KILOKV_QUEUE_BYTES_MAX is \"lots\": it must be a size");
  expect_error(parse({"--batch-max-transactions", "5000000000"}), "--batch-max-transactions is \"5000000000\"");
  expect_error(parse({"--batch-max-transactions", "0"}), "--batch-max-transactions");
  expect_error(parse({"--device", "tpu"}), "device is tpu; the limit is one of auto, cpu");
  expect_error(parse({"--strategy", "magic"}), "strategy is magic; the limit is one of");
  expect_error(parse({"--threads", "1025"}), "0 to 1024 (--threads)");
  const std::string most = "it must be a whole number up to 4294967295";
  expect_error(parse({"--threads", "all"}), "--threads is \"all\": " + most);
  expect_error(parse({"--guards-max", "99999999999"}), "--guards-max is \"99999999999\": " + most);
  expect_error(parse({"--shadow-rate", "1.01"}), "--shadow-rate is 1.01; the limit is 0 to 1");
  expect_error(parse({}, {{"KILOKV_SHADOW_RATE", "5%"}}), "KILOKV_SHADOW_RATE is \"5%\": it must be a share");
  expect_error(parse({"--log-level", "loud"}), "warning");
  expect_error(parse({"--log-format", "xml"}), "--log-format is \"xml\": it must be one of text, json");
  expect_error(parse({"--log-keys", "some"}), "--log-keys is \"some\": it must be one of full, hash, none");
  expect_error(parse({"--create", "always"}),
               "creation of a database is always; the limit is auto or never (--create)");
  expect_error(parse({"--queue-bytes-max", "0"}), "--queue-bytes-max is 0B; the limit is 1B to 1GiB");
  expect_error(parse({"--log-buffer", "1"}), "log buffer is 1B; the limit is 64KiB to 1GiB (--log-buffer)");
  expect_error(parse({"--listen", "7070"}), "HOST:PORT");
  expect_error(parse({"--listen", "127.0.0.1:70000"}), "0 to 65535");
  expect_error(parse({"--no-such-flag"}), "--no-such-flag");
  expect_error(parse({"--message-bytes-max", "1GiB"}), "--message-bytes-max");
  expect_error(parse({"--key-bytes-max", "4KiB"}), "--key-bytes-max");
}

// No setting is added to a clock, or multiplied, or counted in 32 bits, at whatever somebody types.
TEST(Config, NoNumberMayBeTheLargest) {
  std::istringstream help(help_text());
  std::string flag, kind;
  int numbers = 0;
  for (std::string line; std::getline(help, line);) {
    std::istringstream words(line);
    if (!(words >> flag >> kind) || flag.substr(0, 2) != "--") continue;
    if (kind != "COUNT" && kind != "SIZE" && kind != "DURATION" && kind != "SHARE") continue;
    ++numbers;
    SCOPED_TRACE(flag);
    if (kind == "DURATION") {
      expect_error(parse({flag.c_str(), "9223372036854775807us"}), flag);
    } else {
      expect_error(parse({flag.c_str(), "18446744073709551615"}), flag);
      expect_error(parse({flag.c_str(), "9223372036854775807"}), flag);
    }
  }
  EXPECT_GT(numbers, 40);
}

struct HelpLine {
  std::string flag, kind, standard;
};

// The settings whose value is a number, a size or a time.
std::vector<HelpLine> numbers_of_the_help() {
  std::vector<HelpLine> lines;
  std::istringstream help(help_text());
  for (std::string line; std::getline(help, line);) {
    std::istringstream words(line);
    HelpLine read;
    if (!(words >> read.flag >> read.kind >> read.standard) || read.flag.substr(0, 2) != "--") continue;
    if (read.kind != "COUNT" && read.kind != "SIZE" && read.kind != "DURATION") continue;
    read.standard = read.standard.substr(1, read.standard.find(']') - 1);
    lines.push_back(read);
  }
  return lines;
}

// Whether the line has the value as a word of its own, with or without a space before the unit.
bool has_value(const std::string& line, const std::string& value) {
  const std::size_t digits = value.find_first_not_of("0123456789");
  std::string pattern = value.substr(0, digits);
  if (digits != std::string::npos) pattern += " ?" + value.substr(digits);
  return std::regex_search(line, std::regex("(^|[^0-9A-Za-z.])" + pattern + "($|[^0-9A-Za-z])"));
}

// Numbers that bound nothing that clients do, and nothing that the server holds: how the engine works.
const std::set<std::string> kNoBounds = {"--threads",           "--expected-records", "--records-per-lock",
                                         "--commit-units",      "--staged-records",   "--transactions-per-thread",
                                         "--concurrency-limit", "--signature-bits",   "--stage-blocks"};

// docs/limits.md names each setting that is a bound, with its default in the same row, or in the same sentence.
TEST(Config, TheDocumentOfLimitsHoldsThemAll) {
  std::vector<std::string> page;
  std::ifstream file(KILOKV_DOCS_DIR "/limits.md");
  for (std::string line; std::getline(file, line);) page.push_back(line);
  std::set<std::string> exempt = kNoBounds;
  for (const HelpLine& setting : numbers_of_the_help()) {
    if (exempt.erase(setting.flag) != 0) continue;
    // The server computes it from the memory of the machine.
    const std::string value = setting.flag == "--memory-limit" ? "70" : setting.standard;
    bool is_there = false;
    for (std::size_t i = 0; i < page.size(); ++i) {
      const bool in_table = page[i].starts_with("|");
      const std::string place = in_table || i == 0 ? page[i] : page[i - 1] + ' ' + page[i];
      is_there = is_there || (page[i].find('`' + setting.flag + '`') != std::string::npos && has_value(place, value));
    }
    EXPECT_TRUE(is_there) << setting.flag << " with " << value;
  }
  EXPECT_TRUE(exempt.empty()) << *exempt.begin() << " is not a setting";
}

TEST(Config, TheDocumentOfLimitsNamesNoOtherSettings) {
  const std::string help = help_text();
  std::ifstream file(KILOKV_DOCS_DIR "/limits.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const std::regex flag("`(--[a-z-]+)");
  int named = 0;
  for (auto it = std::sregex_iterator(page.begin(), page.end(), flag); it != std::sregex_iterator(); ++it, ++named) {
    EXPECT_NE(help.find("  " + (*it)[1].str() + ' '), std::string::npos) << (*it)[1];
  }
  EXPECT_GT(named, 70);
}

TEST(Config, LimitsThatDependOnEachOther) {
  expect_error(parse({"--range-keys-max", "100001"}), "1 to 100000");
  EXPECT_TRUE(parse({"--range-keys-max", "200000", "--transaction-keys-max", "200000"}).ok());
  expect_error(parse({"--value-bytes-max", "4MiB"}), "--value-bytes-max x --operations-max");
  EXPECT_TRUE(parse({"--value-bytes-max", "4MiB", "--operations-max", "512"}).ok());
  expect_error(parse({"--expected-records", "11", "--table-records-max", "10"}), "--expected-records");
}

TEST(Config, WhatHasNoLocksTakesNoNumbersOfThem) {
  expect_error(parse({"--records-per-lock", "0"}), "1 to 1048576 (--records-per-lock)");
  expect_error(parse({"--transactions-per-thread", "1048577"}), "0 to 1048576 (--transactions-per-thread)");
  for (const std::string& strategy : engine::Engine::strategies()) {
    SCOPED_TRACE(strategy);
    const char* const name = strategy.c_str();
    EXPECT_TRUE(parse({"--strategy", name, "--records-per-lock", "1", "--transactions-per-thread", "0"}).ok());
    const engine::StrategyInfo* const info = engine::find_strategy_info(strategy);
    EXPECT_EQ(parse({"--strategy", name, "--records-per-lock", "16"}).ok(), info != nullptr && info->has_locks);
    EXPECT_EQ(parse({"--strategy", name, "--transactions-per-thread", "4"}).ok(),
              info != nullptr && info->takes_tickets);
    EXPECT_EQ(parse({"--strategy", name, "--writer-history", "512B"}).ok(), strategy == "kilo");
    EXPECT_EQ(parse({"--strategy", name, "--staged-records", "64"}).ok(), strategy == "local");
    EXPECT_EQ(parse({"--strategy", name, "--signature-bits", "64"}).ok(), strategy == "local");
    EXPECT_EQ(parse({"--strategy", name, "--stage-blocks", "2"}).ok(), strategy == "local");
  }
}

TEST(Config, ErrorsInTheFileNameFileAndLine) {
  expect_error(parse({"--foo"}), "--foo; kilokvd --help lists the flags");
  expect_error(parse({"--drain-timeout", "1000000h"}), "876000h");
  const ConfigFile unknown("parked-max = 5\nbatch-max-dealy = \"1ms\"\n");
  expect_error(parse({"--config", unknown.path()}),
               std::string(unknown.path()) + ":2:1: batch-max-dealy: unknown key; a key is");
}

TEST(Config, AKeyWithUnderscoresIsToldItsName) {
  const ConfigFile file("batch_max_delay = \"1ms\"\n");
  expect_error(parse({"--config", file.path()}), ":1:1: batch_max_delay: unknown key; did you mean batch-max-delay?");
}

TEST(Config, ABadValueInTheFileNamesFileAndLine) {
  const ConfigFile bad("\nbatch-max-delay = \"soon\"\n");
  expect_error(parse({"--config", bad.path()}), ":2:1: batch-max-delay is \"soon\"");
}

TEST(Config, AValueThatIsNotAllowedNamesItsSource) {
  const ConfigFile file("threads = 1025\n");
  const std::string path = file.path();
  expect_error(parse({"--config", file.path()}), "threads is 1025; the limit is 0 to 1024 (" + path + ":1:1: threads)");
  expect_error(parse({"--config", file.path(), "--threads", "1026"}), "threads is 1026; the limit is 0 to 1024 (--th");
  expect_error(parse({"--config", file.path()}, {{"KILOKV_THREADS", "1027"}}), "0 to 1024 (KILOKV_THREADS)");
  expect_error(parse({}, {{"KILOKV_LISTEN", "7070"}}), "KILOKV_LISTEN is \"7070\": it must be HOST:PORT");
}

TEST(Config, AServerThatOnlyReadsMakesNoDatabase) {
  EXPECT_EQ(parse({"--read-only", "on"})->options.storage.create, "never");
  EXPECT_EQ(parse({"--read-only", "on", "--create", "auto"})->options.storage.create, "auto");
  EXPECT_EQ(parse({"--read-only", "off"})->options.storage.create, "auto");
}

// Both are named where they stand, and what has its default by its flag.
TEST(Config, ValuesThatDoNotGoTogetherNameTheirSources) {
  const ConfigFile file("\nsession-lease-max = \"30s\"\nexpected-records = 11\n");
  const std::string path = file.path();
  expect_error(parse({"--config", file.path()}),
               "--session-lease-default is 1m; the limit is 30s (" + path + ":2:1: session-lease-max)");
  expect_error(parse({"--config", file.path(), "--table-records-max", "10"}),
               path + ":3:1: expected-records is 11; the limit is 0 to 10 (--table-records-max)");
  expect_error(parse({"--value-bytes-max", "4MiB"}, {{"KILOKV_OPERATIONS_MAX", "1000"}}),
               "--value-bytes-max x KILOKV_OPERATIONS_MAX is ");
}

// Each message has the place, the key, and what to write. No words of the parser are in it.
TEST(Config, AMalformedFileNamesItsPlaceAndWhatToWrite) {
  const std::string quotes = ", which is neither a number nor a text in quotes; a text is written as ";
  const struct {
    const char* text;
    std::string error;
  } cases[] = {
      {"parked-max = 5\nparked-bytes-max = = 3\n", ":2:20: parked-bytes-max is = 3" + quotes},
      {"batch-max-delay = 2ms\n", ":1:20: batch-max-delay is 2ms" + quotes + "batch-max-delay = \"2ms\""},
      {"log-level = warning # loud\n", "log-level is warning" + quotes + "log-level = \"warning\""},
      {"threads = 1\n\nthreads = 2\n", "threads is set twice; it is first set in line 1"},
      {"threads =\n", "threads has no value; write a number, or a text in quotes"},
      {"threads\n", "\"threads\" does not have the form key = value"},
      {"listen: \"x\"\n", "\"listen: \"x\"\" does not have the form key = value"},
      {"= 3\n", "\"= 3\" does not have the form key = value"},
      {"\xff\n", "\"?\" does not have the form key = value"},
      {"listen = \"127.0.0.1:1\n",
       "listen: the text \"127.0.0.1:1 cannot be read; a text has a quote before and after it"},
      {"data-dir = \"C:\\data\"\n", "data-dir: the text \"C:\\data\" cannot be read"},
      {"threads = 99999999999999999999\n", "threads is 99999999999999999999" + quotes},
      {"[server]\nthreads = 1\n", ":1:2: server is a table; this file must have no tables"},
      {"\n  threads = [1]\n", ":2:3: threads: the value must be a string, a number, or true or false"},
  };
  for (const auto& [text, error] : cases) {
    SCOPED_TRACE(text);
    const ConfigFile file(text);
    const auto line = parse({"--config", file.path()});
    expect_error(line, error);
    EXPECT_EQ(line.status().message().rfind(file.path(), 0), 0u) << line.status().message();
    for (const char* raw : {"Error while", "expected", "saw '", "U+", "parsing", "\n"}) {
      EXPECT_EQ(line.status().message().find(raw), std::string::npos) << line.status().message();
    }
  }
  expect_error(parse({"--config", "no-such-file.toml"}),
               "--config: cannot read no-such-file.toml: No such file or directory");
  expect_error(parse({"--config", "/tmp"}), "--config: /tmp is a directory, not a file");
}

TEST(Config, AWrongCommandLineIsSaidInWordsOfOurOwn) {
  const auto expect = [](std::vector<const char*> words, const std::string& problem) {
    const auto line = parse(std::move(words));
    ASSERT_FALSE(line.ok()) << problem;
    EXPECT_EQ(line.status().message(), problem + "; kilokvd --help lists the flags");
  };
  expect({"--threads"}, "--threads needs a value");
  expect({"--threads="}, "--threads needs a value");
  expect({"--check-config", "--config"}, "--config needs a value");
  expect({"--threads", "1", "--threads", "2"}, "--threads is given twice");
  expect({"--threads=1", "--listen", "x:1", "--threads=2"}, "--threads is given twice");
  expect({"--check-config=x"}, "--check-config takes no value");
  expect({"--foo", "1"}, "unknown flag --foo");
  expect({"-x"}, "unknown flag -x");
  expect({"foo"}, "unexpected \"foo\": every setting is a flag");
}

TEST(Config, HelpVersionAndCheck) {
  const auto help = parse({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_EQ(help->action, CommandLine::Action::print);
  EXPECT_EQ(help->text, help_text());
  EXPECT_NE(parse({"--version"})->text.find("commit"), std::string::npos);
  EXPECT_EQ(parse({"--check-config"})->action, CommandLine::Action::check_config);
}

// docs/configuration.md holds the text that --help prints. This test keeps the two equal.
TEST(Config, TheDocumentHoldsTheHelpText) {
  std::ifstream file(KILOKV_DOCS_DIR "/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("```text\n" + help_text() + "```\n"), std::string::npos)
      << "put this between ```text and ``` in docs/configuration.md:\n"
      << help_text();
}

TEST(Config, TheFilesOfTlsBelongTogether) {
  for (const auto& [arguments, part] : std::vector<std::pair<std::vector<const char*>, std::string>>{
           {{"--tls-cert", "c"}, "--tls-cert needs --tls-key, the key of the certificate"},
           {{"--tls-key", "k"}, "--tls-key needs --tls-cert, the certificate of the key"},
           {{"--tls-client-ca", "a"}, "--tls-client-ca needs --tls-cert, because"},
           {{"--tls-cert", "c", "--tls-key", "k", "--tls-crl-dir", "d"}, "--tls-crl-dir needs --tls-client-ca, the"}}) {
    expect_error(parse(arguments), part);
  }
  const auto line = parse({"--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a", "--tls-crl-dir", "d"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  const TlsOptions& tls = line->options.service.tls;
  EXPECT_TRUE(tls.enabled());
  EXPECT_EQ(tls.cert_file + tls.key_file + tls.client_ca_file + tls.crl_dir, "ckad");
  EXPECT_FALSE(parse({})->options.service.tls.enabled());
}

}  // namespace
}  // namespace kilokv::server
