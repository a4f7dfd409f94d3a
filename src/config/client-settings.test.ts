import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder } from '../../test/parts/engines.ts'
import { type ClientSettings, readClientSettings } from './client-settings.ts'
import { formatFault } from './document.ts'

function inputsOf(cwd: string, env: Record<string, string>) {
  return { env, cwd, stdoutIsTerminal: true, providerVariables: [], builtInProviderIds: [], builtInModels: [] }
}

function read(cwd: string, env: Record<string, string>): ClientSettings | string {
  const settings = readClientSettings(inputsOf(cwd, env))
  return 'faults' in settings ? settings.faults.map(formatFault).join('\n') : settings
}

function settingsOf(cwd: string, env: Record<string, string>): ClientSettings {
  const settings = read(cwd, env)
  if (typeof settings === 'string') throw new Error(settings)
  return settings
}

test('uses the address the gateway would listen on, with loopback in place of a wildcard', () => {
  using folder = createThrowAwayFolder()
  const urlOf = (env: Record<string, string>) => settingsOf(folder.path, env).url
  expect(urlOf({})).toBe('http://127.0.0.1:8080')
  expect(urlOf({ TOLLGATE_HOST: '0.0.0.0', TOLLGATE_PORT: '9000' })).toBe('http://127.0.0.1:9000')
  expect(urlOf({ TOLLGATE_HOST: '::' })).toBe('http://[::1]:8080')
  writeFileSync(join(folder.path, 'tollgate.yaml'), 'server: { port: 9001 }')
  expect(urlOf({})).toBe('http://127.0.0.1:9001')
  expect(urlOf({ TOLLGATE_URL: 'https://gate.example/base/v1/' })).toBe('https://gate.example/base')
})

test('uses the address in the data folder unless the environment sets another', () => {
  using folder = createThrowAwayFolder()
  const urlOf = (env: Record<string, string> = {}) => settingsOf(folder.path, env).url
  const note = (text: string) => writeFileSync(join(folder.path, 'data', 'address'), text)
  mkdirSync(join(folder.path, 'data'))
  writeFileSync(join(folder.path, 'tollgate.yaml'), 'server: { port: 0 }')
  note('http://127.0.0.1:9123\n')
  expect(urlOf()).toBe('http://127.0.0.1:9123')
  expect(urlOf({ TOLLGATE_PORT: '0' })).toBe('http://127.0.0.1:9123')
  expect(urlOf({ TOLLGATE_PORT: '9000' })).toBe('http://127.0.0.1:9000')
  expect(urlOf({ TOLLGATE_URL: 'http://gate.example' })).toBe('http://gate.example')
  note('http://0.0.0.0:9123\n')
  expect(urlOf()).toBe('http://127.0.0.1:9123')
  note('http://[::]:80\n')
  expect(urlOf()).toBe('http://[::1]:80')
  for (const nothing of ['', 'not an address', 'file:///etc/passwd']) {
    note(nothing)
    expect(read(folder.path, {})).toContain('set TOLLGATE_URL')
  }
})

test('refuses settings that do not say where the gateway is, and says what would', () => {
  using folder = createThrowAwayFolder()
  expect(read(folder.path, { TOLLGATE_PORT: '0' })).toContain('set TOLLGATE_URL')
  expect(read(folder.path, { TOLLGATE_URL: 'gate.example' })).toContain('TOLLGATE_URL')
  expect(read(folder.path, { TOLLGATE_URL: 'http://user:secret@gate.example' })).not.toContain('secret')
  writeFileSync(join(folder.path, 'tollgate.yaml'), 'server: { prt: 9001 }')
  expect(read(folder.path, {})).toContain('prt')
  expect(settingsOf(folder.path, { TOLLGATE_URL: 'http://gate.example' }).url).toBe('http://gate.example')
})

test('finds the gateway in a file that is wrong elsewhere, and reports the faults', () => {
  using folder = createThrowAwayFolder()
  const withFile = (text: string, env: Record<string, string> = {}) => {
    writeFileSync(join(folder.path, 'tollgate.yaml'), text)
    const { url, dataFolder, doubts } = settingsOf(folder.path, env)
    return [url, dataFolder.slice(folder.path.length), ...doubts.map(({ field }) => field)]
  }
  const wrongModels = 'server: { port: 9001, data: here }\nmodels: all\n'
  expect(withFile(wrongModels)).toEqual(['http://127.0.0.1:9001', '/here', 'models'])
  expect(withFile(wrongModels, { TOLLGATE_PORT: '9002' })[0]).toBe('http://127.0.0.1:9002')
  expect(withFile('server: { port: 9001 }\nmodels: [\n').slice(0, 2)).toEqual(['http://127.0.0.1:9001', '/data'])
  expect(withFile('server: { port: 9001, log: loud }')).toEqual(['http://127.0.0.1:9001', '/data', 'server.log'])
  const wrongOrigin = 'server: { port: 9001, cors_origins: [x] }'
  expect(withFile(wrongOrigin)).toEqual(['http://127.0.0.1:9001', '/data', 'server.cors_origins[0]'])
  // With TOLLGATE_URL the file does not matter.
  expect(withFile(wrongModels, { TOLLGATE_URL: 'http://gate.example' })).toEqual(['http://gate.example', '/here'])
  // Commands that work on the data folder do not guess which one a broken file meant.
  writeFileSync(join(folder.path, 'tollgate.yaml'), 'server: { port: 9001 }\nmodels: [\n')
  const unasked = (env: Record<string, string>) =>
    'faults' in readClientSettings(inputsOf(folder.path, env), 'not called')
  expect([unasked({}), unasked({ TOLLGATE_DATA: 'here' })]).toEqual([true, false])
  writeFileSync(join(folder.path, 'tollgate.yaml'), 'server: { port: many }')
  expect(read(folder.path, {})).toContain('server.port')
  writeFileSync(join(folder.path, 'tollgate.yaml'), wrongModels)
  expect(read(folder.path, { DATABASE_URL: 'mysql://db' })).toContain('DATABASE_URL')
})

test('distinguishes a key that only the gateway can see from a fault of the file', () => {
  using folder = createThrowAwayFolder()
  const provider = (key: string) =>
    `{ id: acme, dialect: openai-chat, base_url: 'http://a.example', api_key: '${key}' }`
  const references = [`\${ACME_KEY}`, 'file:acme.key', `a\${ACME_KEY}`]
  const kinds = references.map((key) => {
    writeFileSync(join(folder.path, 'tollgate.yaml'), `providers: [${provider(key)}]`)
    return settingsOf(folder.path, {}).doubts.map(({ isMissingHere }) => isMissingHere ?? false)
  })
  expect(kinds).toEqual([[true], [true], [false]])
})

test('sends the token of the data folder to this machine only, and the variable anywhere', () => {
  using folder = createThrowAwayFolder()
  mkdirSync(join(folder.path, 'data'))
  writeFileSync(join(folder.path, 'data', 'admin-token'), 'from-the-file\n')
  const tokenOf = (env: Record<string, string>) => settingsOf(folder.path, env).token?.reveal()
  expect(tokenOf({})).toBe('from-the-file')
  expect(tokenOf({ TOLLGATE_URL: 'http://localhost:1' })).toBe('from-the-file')
  expect(tokenOf({ TOLLGATE_URL: 'https://gate.example' })).toBeUndefined()
  expect(tokenOf({ TOLLGATE_URL: 'http://127.0.0.1.gate.example' })).toBeUndefined()
  expect(tokenOf({ TOLLGATE_ADMIN_TOKEN: 'set', TOLLGATE_URL: 'https://gate.example' })).toBe('set')
  expect(settingsOf(folder.path, { TOLLGATE_DATA: 'elsewhere' }).tokenAbsence).toContain('elsewhere/admin-token')
})
