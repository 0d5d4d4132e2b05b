// Certificates made for a test: an authority, and what it signed.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>

namespace limber {

struct Certificate {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> x509;
  std::string certificate_file, key_file;
};

// Signed by `issuer`, or by itself; as files FOLDER/NAME.pem and FOLDER/NAME.key.
inline Certificate make_certificate(const std::string& folder, const std::string& name,
                                    const Certificate* issuer = nullptr) {
  Certificate made;
  made.key = {EVP_EC_gen("P-256"), EVP_PKEY_free};
  made.x509 = {X509_new(), X509_free};
  X509* x509 = made.x509.get();
  X509_set_version(x509, 2);
  static long serial = 0;
  ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, made.key.get());
  X509_NAME* subject = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x509, issuer ? X509_get_subject_name(issuer->x509.get()) : subject);
  const auto extend = [x509](int kind, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
  };
  extend(NID_basic_constraints, issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
  if (issuer) extend(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  EXPECT_GT(X509_sign(x509, issuer ? issuer->key.get() : made.key.get(), EVP_sha256()), 0);
  made.certificate_file = folder + "/" + name + ".pem";
  made.key_file = folder + "/" + name + ".key";
  std::FILE* file = std::fopen(made.certificate_file.c_str(), "w");
  EXPECT_EQ(PEM_write_X509(file, x509), 1);
  std::fclose(file);
  file = std::fopen(made.key_file.c_str(), "w");
  EXPECT_EQ(PEM_write_PrivateKey(file, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
  std::fclose(file);
  return made;
}

}  // namespace limber
