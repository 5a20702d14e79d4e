// TLS and logins: the credentials of the channel, and plain words for handshakes that fail.
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:tls';

import { credentials } from '@grpc/grpc-js';

import { changed, makeError, misuse } from './make_errors.js';

// Where systems keep the authorities that they trust, in one file. Node has a list of its own, and uses it only if
// there is none of these.
const SYSTEM_AUTHORITIES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/cert.pem',
];

// Node's words for a certificate that is not accepted.
const BAD_CERTIFICATE = /certificate|altnames|self.signed|unable to (?:get|verify)/i;
const SPEAKS_NO_TLS = /wrong version number|packet length too long/i;

function read(file, what) {
  try {
    return readFileSync(file);
  } catch (error) {
    throw misuse(`${what}: cannot read ${file}: ${error.message}`, { cause: error });
  }
}

function authorities(file) {
  if (file) {
    const pem = read(file, 'the authorities of the server (tls.caFile)');
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
    throw misuse(`the authorities of the server (tls.caFile): ${file} has no certificate in PEM form`);
  }
  const system = [process.env.SSL_CERT_FILE, ...SYSTEM_AUTHORITIES].find((name) => name && existsSync(name));
  return system ? readFileSync(system) : null;
}

// The client's own certificate and its key, or nulls.
function ownPair({ certFile, keyFile }) {
  if (!certFile && !keyFile) return { certificate: null, key: null };
  if (!keyFile) throw misuse('tls.certFile needs tls.keyFile, the key of the certificate');
  if (!certFile) throw misuse('tls.keyFile needs tls.certFile, the certificate of the key');
  const certificate = read(certFile, 'the certificate of the client (tls.certFile)');
  const key = read(keyFile, 'the certificate of the client (tls.keyFile)');
  let parsed;
  let matches;
  try {
    parsed = new X509Certificate(certificate);
    matches = parsed.checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw misuse(`the certificate of the client (tls.certFile, tls.keyFile): ${error.message}`, { cause: error });
  }
  if (!matches) throw misuse(`the key in ${keyFile} is not that of the certificate in ${certFile}`);
  const time = Date.now();
  if (time >= Date.parse(parsed.validTo))
    throw misuse(`the certificate of the client in ${certFile} expired on ${parsed.validTo}`);
  if (time < Date.parse(parsed.validFrom)) {
    throw misuse(`the certificate of the client in ${certFile} is not valid before ${parsed.validFrom}`);
  }
  return { certificate, key };
}

export function channelCredentials({ tls }) {
  if (!tls) return credentials.createInsecure();
  const { certificate, key } = ownPair(tls);
  return credentials.createSsl(authorities(tls.caFile), key, certificate);
}

// The error in our own words, or null if it is not about a handshake.
export function explainHandshake({ tls, endpoint }, error) {
  if (!tls) return null;
  if (SPEAKS_NO_TLS.test(error.message)) {
    const text = `the server at ${endpoint} does not use TLS, and this client does: turn TLS off here, or on there`;
    return changed(error, {}, text, 'UNAUTHENTICATED');
  }
  const reason = /Last error: (.*)$/s.exec(error.message)?.[1] ?? '';
  if (!BAD_CERTIFICATE.test(reason)) return null;
  return changed(
    error,
    {},
    `the certificate of the server at ${endpoint} is not accepted: ${reason}`,
    'UNAUTHENTICATED',
  );
}

// Asks the server whether it speaks TLS, which explains why it closes connections without TLS.
function speaksTls({ host, port }) {
  return new Promise((resolve) => {
    const socket = connect({ host: host.replace(/^\[|\]$/g, ''), port, rejectUnauthorized: false, timeout: 1000 });
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('secureConnect', () => end(true));
    socket.on('timeout', () => end(false));
    // An alert, such as for a missing certificate of the client, is TLS, too.
    socket.on('error', (error) => end(/alert/i.test(error.message)));
  });
}

export async function explainMissingTls(options, error) {
  if (options.tls || !(await speaksTls(options))) return error;
  const text = `the server at ${options.endpoint} uses TLS, and this client does not: turn TLS on (the option tls)`;
  return makeError('UNAUTHENTICATED', text);
}
