import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { readOwnCredential } from './own-credential.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
/** Signing with a key of any length would keep everybody waiting. */
const long = generateKeyPairSync('rsa', { modulusLength: 4352 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })

/** As Google gives it out. */
const keyFile = {
  type: 'service_account',
  project_id: 'acme-prod',
  private_key_id: '0123456789abcdef0123456789abcdef01234567',
  private_key: pem,
  client_email: 'robot@acme-prod.iam.gserviceaccount.com',
  client_id: '100000000000000000001',
  auth_uri: 'https://accounts.google.com/o/oauth2/auth',
  token_uri: 'http://169.254.169.254/token',
  auth_provider_x509_cert_url: 'https://www.googleapis.com/oauth2/v1/certs',
  universe_domain: 'googleapis.com',
}

test('of a key file is kept who asks and with what, and nothing of where', () => {
  const read = readOwnCredential('google-oauth', `${JSON.stringify(keyFile, undefined, 2)}\n`)
  if ('fault' in read) throw new Error(read.fault)
  const { type, project_id, private_key_id, private_key, client_email } = keyFile
  expect(JSON.parse(read.text)).toEqual({ type, project_id, private_key_id, private_key, client_email })
  expect(read.text).not.toContain('\n')
  expect(read.name).toBe(private_key_id)
})

const whole = 'must be the whole JSON key file of a service account'
const without = (name: keyof typeof keyFile) => JSON.stringify({ ...keyFile, [name]: undefined })
const withValue = (values: object) => JSON.stringify({ ...keyFile, ...values })

test.each([
  ['a path', '/home/somebody/key.json', `${whole}: its content, not its path, and this is no JSON object`],
  [
    'half of it',
    JSON.stringify(keyFile).slice(0, 900),
    `${whole}: its content, not its path, and this is no JSON object`,
  ],
  ['a list', '["service_account"]', `${whole}: its content, not its path, and this is no JSON object`],
  [
    'another kind, which would name servers to ask',
    withValue({ type: 'external_account' }),
    `${whole}: in this one \`type\` is not "service_account"`,
  ],
  ['no key', without('private_key'), `${whole}: in this one \`private_key\` is missing or no text`],
  ['no account', without('client_email'), `${whole}: in this one \`client_email\` is missing or no text`],
  ['no project', without('project_id'), `${whole}: in this one \`project_id\` is missing or no text`],
  [
    'an id that is a number',
    withValue({ private_key_id: 7 }),
    `${whole}: in this one \`private_key_id\` is missing or no text`,
  ],
  [
    'a project that is a path',
    withValue({ project_id: '../../secret-project' }),
    'must name a project: in this key file `project_id` is not the id of one',
  ],
  [
    'a key that is cut off',
    withValue({ private_key: pem.slice(0, 500) }),
    'must hold a private key: in this key file `private_key` is no RSA key in PEM form of up to 4096 bits',
  ],
  [
    'too long a key',
    withValue({ private_key: long }),
    'must hold a private key: in this key file `private_key` is no RSA key in PEM form of up to 4096 bits',
  ],
  [
    'a key of another kind',
    withValue({ private_key: curve }),
    'must hold a private key: in this key file `private_key` is no RSA key in PEM form of up to 4096 bits',
  ],
  ['far too much', ' '.repeat(16_385), 'must have at most 16384 characters'],
])('%s is refused in words that repeat nothing of it', (_, text, fault) => {
  expect(readOwnCredential('google-oauth', text)).toEqual({ fault })
})

test('a key that travels in a header stays one word', () => {
  expect(readOwnCredential('bearer', 'sk-1')).toEqual({ text: 'sk-1' })
  expect(readOwnCredential('x-api-key', 'two words')).toHaveProperty('fault')
  expect(readOwnCredential('sigv4', 'AKID:shh')).toEqual({ text: 'AKID:shh' })
})
