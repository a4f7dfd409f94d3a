import { expect, test } from 'bun:test'
import { hkdfSync } from 'node:crypto'
import { inspect } from 'node:util'
import { Secret } from '../kernel/secret.ts'
import {
  type Belonging,
  createKeyRing,
  createWrappingKey,
  credentialBinding,
  openEnvelope,
  rewrapKey,
  sealSecret,
} from './sealing.ts'
import type { MasterSecret } from './secrets.ts'

const canary = 'sk-canary-0123456789-envelope'
const oldSecret: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => at), source: 'old' }
const newSecret: MasterSecret = { bytes: Uint8Array.from({ length: 32 }, (_, at) => 255 - at), source: 'new' }
const keys = createKeyRing(oldSecret)
const belonging: Belonging = {
  id: 'cred_1',
  workspaceId: 'ws_a',
  provider: 'acme',
  origin: 'https://api.acme.test',
  baseUrl: 'https://api.acme.test/v1',
}

const seal = () => sealSecret(new Secret(canary), belonging, keys.current)

/** Another implementation than the one that seals. */
async function decrypt(key: Uint8Array, text: string, binding: string): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = Uint8Array.fromBase64(text, { alphabet: 'base64url' })
  const imported = await crypto.subtle.importKey('raw', new Uint8Array(key), 'AES-GCM', false, ['decrypt'])
  const additionalData = new TextEncoder().encode(binding)
  const parameters = { name: 'AES-GCM', iv: bytes.slice(0, 12), additionalData, tagLength: 128 }
  return new Uint8Array(await crypto.subtle.decrypt(parameters, imported, bytes.slice(12)))
}

test('K1: is AES-256-GCM under a data key, which is wrapped by the subkey of the master secret', async () => {
  const envelope = seal()
  // The subkey of the counting secret, as secrets.test.ts has it from Python.
  const kek = Buffer.from('2e046d176b0162a01a5e925d8907cf193293cd4d473a5123f000180cf563fea5', 'hex')
  const version = Buffer.from(hkdfSync('sha256', kek, '', 'key-version', 8)).toString('hex')
  expect(envelope.keyVersion).toBe(version)
  const rest = '"ws_a","acme","cred_1","https://api.acme.test","https://api.acme.test/v1"]'
  const bindings = {
    dataKey: `["tollgate-credential-1","data-key",${rest} ${version}`,
    secret: `["tollgate-credential-1","secret",${rest}`,
  }
  const dataKey = await decrypt(kek, envelope.wrappedKey, bindings.dataKey)
  expect(dataKey).toHaveLength(32)
  expect(new TextDecoder().decode(await decrypt(dataKey, envelope.ciphertext, bindings.secret))).toBe(canary)
})

test('opens what it sealed, and seals the same secret differently each time', () => {
  const [first, second] = [seal(), seal()]
  expect((openEnvelope(first, belonging, keys) as Secret).reveal()).toBe(canary)
  expect(first.ciphertext).not.toBe(second.ciphertext)
  expect(first.wrappedKey).not.toBe(second.wrappedKey)
})

test('K1: does not open for another workspace, provider, credential, origin or base URL', () => {
  const envelope = seal()
  const others: Partial<Record<keyof Belonging, string>>[] = [
    { workspaceId: 'ws_b' },
    { provider: 'other' },
    { id: 'cred_2' },
    { origin: 'https://evil.test' },
    { baseUrl: 'https://evil.test/v1' },
  ]
  for (const other of others) {
    expect(openEnvelope(envelope, { ...belonging, ...other } as Belonging, keys)).toBe('altered')
  }
  expect(openEnvelope(envelope, { ...belonging, baseUrl: undefined }, keys)).toBe('altered')
})

test('K1: does not open with any byte of it changed, nor with parts of another envelope', () => {
  const envelope = seal()
  const other = seal()
  for (const part of ['ciphertext', 'wrappedKey'] as const) {
    const bytes = Buffer.from(envelope[part], 'base64url')
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
      expect(openEnvelope({ ...envelope, [part]: changed.toString('base64url') }, belonging, keys)).toBe('altered')
    }
    expect(openEnvelope({ ...envelope, [part]: other[part] }, belonging, keys)).toBe('altered')
    for (const text of ['', 'x', '!', bytes.subarray(0, -1).toString('base64url'), 'ä'.repeat(40)]) {
      expect(openEnvelope({ ...envelope, [part]: text }, belonging, keys)).toBe('altered')
    }
  }
})

test('distinguishes an unknown master secret from an altered row', () => {
  const envelope = seal()
  expect(openEnvelope(envelope, belonging, createKeyRing(newSecret))).toBe('unknown_secret')
  const claim = { ...envelope, keyVersion: createWrappingKey(newSecret).version }
  expect(openEnvelope(claim, belonging, createKeyRing(newSecret, oldSecret))).toBe('altered')
})

test('K3: a rewrapped data key opens under the new secret only, with the same ciphertext', () => {
  const envelope = seal()
  const [from, to] = [createWrappingKey(oldSecret), createWrappingKey(newSecret)]
  const wrappedKey = rewrapKey(envelope.wrappedKey, credentialBinding(belonging), { from, to })
  const rotated = { ...envelope, wrappedKey, keyVersion: to.version }
  expect((openEnvelope(rotated, belonging, createKeyRing(newSecret)) as Secret).reveal()).toBe(canary)
  expect(openEnvelope(rotated, belonging, createKeyRing(oldSecret))).toBe('unknown_secret')
  expect(rewrapKey(wrappedKey, credentialBinding(belonging), { from, to })).toBe('altered')
  expect(rewrapKey(envelope.wrappedKey, credentialBinding({ ...belonging, workspaceId: 'ws_b' }), { from, to })).toBe(
    'altered',
  )
})

test('K4: neither a key ring nor an opened secret shows bytes when printed', () => {
  const kek = '2e046d176b0162a01a5e925d8907cf193293cd4d473a5123f000180cf563fea5'
  const shown = [keys, createWrappingKey(oldSecret), openEnvelope(seal(), belonging, keys), seal()]
  for (const text of shown.flatMap((value) => [
    inspect(value, { depth: 9, showHidden: true }),
    JSON.stringify(value),
  ])) {
    expect(text).not.toContain(kek.slice(0, 16))
    expect(text).not.toContain('46, 4, 109')
    expect(text).not.toContain(canary.slice(0, 20))
  }
})
