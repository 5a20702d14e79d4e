// Three kinds of unique numbers. docs/recipes.md says which one is for what.
//
//   ids/NAME/last             the number of the last version that was taken
//   ids/NAME/next             how many numbers the blocks have used up
//   ids/NAME/numbered         how many documents have a number
//   ids/NAME/number/DOCUMENT  the number of a document
#include "client/examples/example.hpp"

namespace {

using namespace example;

constexpr char kUsage[] =
    "ids [--endpoint HOST:PORT] VERB ...\n"
    "  version NAME             a number that grows, and never comes again, also after a restore from a backup\n"
    "  block NAME COUNT         COUNT numbers at once; the program may give them out without the server\n"
    "  number NAME DOCUMENT     1, 2, 3 and so on without a gap; the same document always gets the same number\n";

Expected<std::string> version(const Server& server, const std::string& name) {
  Batch batch;
  batch.begin();
  batch.put(batch.key("ids/" + name + "/last"), CommitVersion{});  // each transaction that writes has a version
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  return "version " + std::to_string(sent->results.at(0).version.value_or(0));
}

Expected<std::string> block(const Server& server, const std::string& name, std::int64_t count) {
  Batch batch;
  batch.begin();
  const Key next = batch.key("ids/" + name + "/next");
  batch.add(next, count);
  batch.get(next);
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  if (sent->results.outcome(0) != Outcome::committed) return std::string(to_string(sent->results.outcome(0)));
  const std::int64_t last = integer_in(sent->results.read(0, 0));
  return "block " + std::to_string(last - count + 1) + " " + std::to_string(last);
}

Expected<std::string> number(const Server& server, const std::string& name, const std::string& document) {
  Batch batch;
  batch.begin();
  const Key numbered = batch.key("ids/" + name + "/numbered"), own = batch.key("ids/" + name + "/number/" + document);
  batch.guard_absent(own);  // false: an earlier run has given it a number
  batch.add(numbered, 1);
  const Op get = batch.get(numbered);
  batch.put(own, FromGet{get});
  batch.otherwise();
  batch.get(own);
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  const Outcome outcome = sent->results.outcome(0);
  if (outcome != Outcome::committed && outcome != Outcome::guard_failed) return std::string(to_string(outcome));
  return "number " + std::to_string(integer_in(sent->results.read(0, 0)));  // both lists have one GET
}

Expected<std::string> command(const Server& server, const Words& words) {
  if (words.size() < 2) return wrong_command();
  const std::string &verb = words[0], &name = words[1];
  if (verb == "version" && words.size() == 2) return version(server, name);
  if (verb == "number" && words.size() == 3) return number(server, name, words[2]);
  const std::int64_t count = integer_of(words.back()).value_or(0);
  if (verb == "block" && words.size() == 3 && count > 0) return block(server, name, count);
  return wrong_command();
}

}  // namespace

int main(int argc, char** argv) { return example::main_of(argc, argv, kUsage, command); }
