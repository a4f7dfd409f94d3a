import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { parseAwsCredential, readOwnCredential, scopeOf, signAws } from './credentials.ts'

const secretAccessKey = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const credential = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey, sessionToken: undefined }
const epochMs = Date.UTC(2015, 7, 30, 12, 36, 0)
const nothing = new Uint8Array(0)
const suite = { region: 'us-east-1', service: 'service' }

test('the example of the documentation', () => {
  const request = {
    url: 'https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08',
    headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    body: nothing,
  }
  const scope = { region: 'us-east-1', service: 'iam' }
  expect(signAws(request, credential, { epochMs, scope, method: 'GET' })).toEqual({
    'x-amz-date': '20150830T123600Z',
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, ' +
      'SignedHeaders=content-type;host;x-amz-date, ' +
      'Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
  })
})

const token =
  'AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=='

test.each([
  ['get-vanilla', 'GET', '/', undefined, '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  ['post-vanilla', 'POST', '/', undefined, '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  [
    'get-vanilla-query-order-key-case',
    'GET',
    '/?Param2=value2&Param1=value1',
    undefined,
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
  ['post-sts-header-before', 'POST', '/', token, '85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead'],
] as const)('%s of the test suite', (_, method, path, sessionToken, signature) => {
  const request = { url: `https://example.amazonaws.com${path}`, headers: {}, body: nothing }
  const signed = signAws(request, { ...credential, sessionToken }, { epochMs, scope: suite, method })
  expect(signed.authorization).toEndWith(`Signature=${signature}`)
  expect(signed['x-amz-security-token']).toBe(sessionToken as string)
})

test('signs every header except those that proxies may change', () => {
  const headers = { 'user-agent': 'tollgate', 'accept-encoding': 'identity', 'content-type': 'application/json' }
  const request = { url: 'https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/invoke', headers, body: nothing }
  expect(signAws(request, credential, { epochMs }).authorization).toContain(
    'SignedHeaders=content-type;host;x-amz-date',
  )
})

test('another body, path, time or secret is another signature', () => {
  const request = {
    url: 'https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3A0/invoke',
    headers: {},
    body: nothing,
  }
  const sign = (change: object, with_ = credential, at = epochMs) =>
    signAws({ ...request, ...change }, with_, { epochMs: at }).authorization
  const all = [
    sign({}),
    sign({ body: new Uint8Array([1]) }),
    sign({ url: request.url.replace('a%3A0', 'a:0') }),
    sign({}, { ...credential, secretAccessKey: 'other' }),
    sign({}, credential, epochMs + 1000),
  ]
  expect(new Set(all).size).toBe(all.length)
  expect(sign({})).toBe(all[0] as string)
})

test('region and service are in the name of the host', () => {
  const scope = (host: string) => scopeOf(new URL(`https://${host}/x`))
  expect(scope('bedrock-runtime.eu-central-1.amazonaws.com')).toEqual({ region: 'eu-central-1', service: 'bedrock' })
  expect(scope('bedrock-runtime-fips.us-west-2.amazonaws.com')).toEqual({ region: 'us-west-2', service: 'bedrock' })
  expect(scope('vpce-0a1-2b3c.bedrock-runtime.eu-west-1.vpce.amazonaws.com')).toMatchObject({ region: 'eu-west-1' })
  expect(scope('bedrock-runtime.ap-southeast-2.api.aws')).toMatchObject({ region: 'ap-southeast-2' })
  expect(scope('bedrock-runtime.us-gov-west-1.amazonaws.com')).toMatchObject({ region: 'us-gov-west-1' })
  expect(scope('bedrock-runtime.cn-north-1.amazonaws.com.cn')).toEqual({ region: 'cn-north-1', service: 'bedrock' })
  expect(scope('llm-proxy-1.corp.example')).toMatchObject({ region: 'us-east-1' })
  expect(scope('127.0.0.1:9000')).toEqual({ region: 'us-east-1', service: 'bedrock' })
})

test.each([
  ['AKID:secret', { accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: undefined }],
  ['AKID:secret:tok:en', { accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: 'tok:en' }],
  ['ABSKQmVkcm9jaw==', undefined],
  [':secret', undefined],
])('%s is read as a pair, or as none', (text, expected) => {
  expect(parseAwsCredential(text)).toEqual(expected)
})

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

test('keeps the account and the key of a key file, and none of its addresses', () => {
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
