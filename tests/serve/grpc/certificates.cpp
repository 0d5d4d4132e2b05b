#include "certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace limber::testing {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

void require(bool done) {
  if (!done) throw std::runtime_error("openssl");
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  const std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

std::string pem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  require(PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return text_of(bio);
}

std::string pem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  require(PEM_write_bio_X509(bio, certificate) == 1);
  return text_of(bio);
}

void extend(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  require(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

// Signed by `issuer` or, when that is null, by itself.
Certificate make(const std::string& name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  static int serial = 1;
  Certificate made(X509_new(), X509_free);
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* signer = issuer != nullptr ? issuer : made.get();
  X509_set_issuer_name(made.get(), X509_get_subject_name(signer));
  extend(made.get(), signer, NID_basic_constraints, issuer != nullptr ? "CA:FALSE" : "critical,CA:TRUE");
  if (issuer != nullptr) extend(made.get(), signer, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  require(X509_sign(made.get(), issuer_key, EVP_sha256()) > 0);
  return made;
}

Key make_key() { return Key(EVP_EC_gen("P-256"), EVP_PKEY_free); }

}  // namespace

struct Authority::Keys {
  Key key = make_key();
  Certificate certificate = make("authority", key.get(), nullptr, key.get());
  std::string text = pem(certificate.get());
};

Authority::Authority() : keys_(std::make_unique<Keys>()) {}
Authority::~Authority() = default;

const std::string& Authority::certificate() const { return keys_->text; }

Identity Authority::sign(const std::string& name) const {
  const Key key = make_key();
  const Certificate certificate = make(name, key.get(), keys_->certificate.get(), keys_->key.get());
  return {pem(key.get()), pem(certificate.get())};
}

}  // namespace limber::testing
