// Makes certificates and keys with the command `openssl`, in the folder of a test.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const EXTENSIONS = {
  server: 'subjectAltName = DNS:localhost, IP:127.0.0.1\nextendedKeyUsage = serverAuth\n',
  other: 'subjectAltName = DNS:other.example\nextendedKeyUsage = serverAuth\n',
  client: 'extendedKeyUsage = clientAuth\n',
};

function openssl(folder, ...flags) {
  execFileSync('openssl', flags, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
}

const newKey = (name) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`];

// An authority in `folder`: NAME.pem and NAME.key. Returns the name of its certificate.
export function makeAuthority(folder, name) {
  openssl(folder, 'req', '-x509', ...newKey(name), '-out', `${name}.pem`, '-subj', `/CN=${name}`, '-days', '2');
  return join(folder, `${name}.pem`);
}

// A certificate of the authority. `kind`: server (of this machine), other (a server elsewhere) or client.
export function makeCertificate(folder, authority, name, kind) {
  writeFileSync(join(folder, `${name}.ext`), EXTENSIONS[kind]);
  openssl(folder, 'req', ...newKey(name), '-out', `${name}.csr`, '-subj', `/CN=${name}`);
  openssl(
    folder,
    ...['x509', '-req', '-in', `${name}.csr`, '-CA', `${authority}.pem`, '-CAkey', `${authority}.key`],
    ...['-CAcreateserial', '-days', '2', '-extfile', `${name}.ext`, '-out', `${name}.pem`],
  );
  return { certFile: join(folder, `${name}.pem`), keyFile: join(folder, `${name}.key`) };
}
