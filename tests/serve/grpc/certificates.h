// Keys and certificates for an hour, made when the test runs.
#pragma once

#include <memory>
#include <string>

namespace limber::testing {

struct Identity {
  std::string key, certificate;  // PEM
};

// Signs for servers on this machine and for clients.
class Authority {
 public:
  Authority();
  ~Authority();
  const std::string& certificate() const;
  Identity sign(const std::string& name) const;

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
};

}  // namespace limber::testing
