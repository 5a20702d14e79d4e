// The pages over the real service and a fake database. tests/unit/service/page_logins_test.cpp has who may see them.
#include "server/monitoring/pages.hpp"

#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

class PagesTest : public ServiceTest {
 protected:
  Page get(const std::string& path, const std::string& method = "GET") {
    return pages_.page({.method = method, .path = path});
  }
  static std::string header(const Page& page, const std::string& name) {
    for (const auto& [own, value] : page.headers) {
      if (own == name) return value;
    }
    return {};
  }
  void serve() {
    service_.serve(&database_);
    service_.set_serving(true);
  }

  Pages pages_{&service_};
};

TEST_F(PagesTest, TheProbesTellTheStates) {
  EXPECT_EQ(get("/livez").code, 200u);
  EXPECT_EQ(get("/livez").body, "ok\n");
  EXPECT_EQ(get("/readyz").code, 503u);
  EXPECT_EQ(get("/readyz").body, "recovering\n");
  serve();
  EXPECT_EQ(get("/readyz").code, 200u);
  EXPECT_EQ(get("/readyz").body, "ready\n");
  service_.set_serving(false);
  EXPECT_EQ(get("/readyz").body, "draining\n");
  service_.close();
  EXPECT_EQ(get("/readyz").code, 503u);
  EXPECT_EQ(get("/livez").code, 200u) << "the process runs until it has ended";
}

// The process ends then. But where its log is on a disk that hangs, too, this may take long.
TEST_F(PagesTest, AServerThatHasFailedIsNotReady) {
  serve();
  database_.set_failed();
  EXPECT_EQ(get("/readyz").code, 503u);
  EXPECT_EQ(get("/readyz").body, "failed\n");
  EXPECT_EQ(get("/livez").code, 200u);
}

TEST_F(PagesTest, OnlyTheTwoLargePagesMayWait) {
  const auto at_once = [&](const char* path, const char* method = "GET") {
    return pages_.page_at_once({.method = method, .path = path}).has_value();
  };
  EXPECT_TRUE(at_once("/livez") && at_once("/readyz") && at_once("/nothing") && at_once("/metrics", "POST"));
  EXPECT_FALSE(at_once("/metrics") || at_once("/status"));
}

TEST_F(PagesTest, BetweenTheGateAndTheHealthCheckItRecovers) {
  service_.serve(&database_);
  EXPECT_EQ(get("/readyz").body, "recovering\n");
}

TEST_F(PagesTest, OtherPathsAndMethodsAreRefused) {
  serve();
  for (const char* path : {"/", "", "/metrics/", "/Metrics", "/metricsx", "/..", "//metrics", "*"}) {
    EXPECT_EQ(get(path).code, 404u) << path;
  }
  for (const char* path : {"/livez", "/readyz", "/metrics", "/status"}) {
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get", ""}) {
      const Page page = get(path, method);
      EXPECT_EQ(page.code, 405u) << path << method;
      EXPECT_EQ(header(page, "Allow"), "GET, HEAD");
    }
    EXPECT_EQ(get(path, "HEAD").code, 200u) << path;
  }
}

TEST_F(PagesTest, TheMetricsComeFromAllSources) {
  serve();
  pages_.add_source(
      [](const ServerReport& report, Families* families) { families->gauge("a", "A").add(report.is_ready ? 1 : 0); });
  pages_.add_source([](const ServerReport&, Families* families) { families->gauge("b", "B").add(2); });
  const Page page = get("/metrics");
  EXPECT_EQ(page.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(page.body, "# HELP a A\n# TYPE a gauge\na 1\n# HELP b B\n# TYPE b gauge\nb 2\n");
}

TEST_F(PagesTest, TheStatusIsThatOfTheCall) {
  serve();
  const Page page = get("/status");
  EXPECT_EQ(page.content_type, "application/json");
  for (const char* part : {R"("state":"ready")", R"("durable_batch":17)", R"("server_version":"1.2.3")",
                           R"("device_model":"a model")", R"("order":"any")", R"("http":{)"}) {
    EXPECT_NE(page.body.find(part), std::string::npos) << part << " in " << page.body;
  }
}

class PagesWithLoginsTest : public ServiceTest {
 protected:
  static ServiceOptions options() {
    ServiceOptions options;
    options.login = true;
    return options;
  }
  PagesWithLoginsTest() : ServiceTest(options()) {}
  Pages pages_{&service_};
};

TEST_F(PagesWithLoginsTest, OnlyTheProbesNeedNoLogin) {
  const auto get = [&](const std::string& path) { return pages_.page({.method = "GET", .path = path}); };
  for (const char* path : {"/metrics", "/status"}) EXPECT_EQ(get(path).code, 503u) << "nobody's rights are known";
  service_.serve(&database_);
  service_.set_serving(true);
  for (const char* path : {"/metrics", "/status"}) {
    const Page page = get(path);
    EXPECT_EQ(page.code, 401u);
    EXPECT_EQ(page.headers.at(0).first, "WWW-Authenticate");
    EXPECT_EQ(page.body, "this server needs a login: a token, or a client certificate\n");
  }
  for (const char* path : {"/livez", "/readyz"}) EXPECT_EQ(get(path).code, 200u);
}

}  // namespace
}  // namespace kilokv::server
