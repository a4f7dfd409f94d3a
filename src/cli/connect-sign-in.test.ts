// `tollgate connect` of a person who is signed in: no key is created or written.

import { expect, setSystemTime, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runHere } from '../../test/parts/command-line.ts'
import { createThrowAwayFolder } from '../../test/parts/engines.ts'
import { startSignInServer } from '../../test/parts/sign-in-server.ts'

const program = join(import.meta.dir, '../../bin/tollgate')

const models = [
  {
    ...{ id: 'acme/large', name: 'Acme Large', context_length: 200_000, max_output_tokens: 32_000 },
    ...{ supported_parameters: ['tools', 'max_tokens'], architecture: { input_modalities: ['text', 'image'] } },
    pricing: { prompt: '0.0000025', completion: '0.00001' },
  },
  { id: 'acme/small', name: 'Acme Small', context_length: null },
]

async function openHome({ isSignedIn = true } = {}) {
  const gateway = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ headers, url }) =>
      url.endsWith('/api/catalog') || headers.get('authorization') === 'Bearer sk-tg-real'
        ? Response.json({ object: 'list', data: models })
        : new Response(null, { status: 401 }),
  })
  const server = startSignInServer({ url: `http://127.0.0.1:${gateway.port}`, key: 'sk-tg-real' })
  const folder = createThrowAwayFolder()
  const run = (args: string, env: Record<string, string> = {}) =>
    runHere(args.split(' '), { env: { HOME: folder.path, ...env }, cwd: folder.path })
  if (isSignedIn) await run(`login ${server.url}`)
  return {
    ...{ url: server.url, path: folder.path, run, server },
    read: (...path: string[]) => readFileSync(join(folder.path, ...path), 'utf8'),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await gateway.stop(true)
      folder[Symbol.dispose]()
    },
  }
}

test('claude gets a command for tokens instead of a key, and undo restores its settings', async () => {
  await using home = await openHome()
  const original = '{ "apiKeyHelper": "mine", "env": { "FOO": "1", "ANTHROPIC_AUTH_TOKEN": "sk-tg-old" } }'
  mkdirSync(join(home.path, '.claude'))
  writeFileSync(join(home.path, '.claude/settings.json'), original)
  // A command is no secret, so a repository of dotfiles does not matter.
  mkdirSync(join(home.path, '.git'))
  const { exit, out, err } = await home.run('connect claude')
  expect([exit, err]).toEqual([0, 'Claude Code uses your sign-in as ada@example.com; no key was created.\n'])
  const helper = `${program} token '${home.url}'`
  expect(JSON.parse(home.read('.claude/settings.json'))).toEqual({
    apiKeyHelper: helper,
    env: {
      ...{ FOO: '1', ANTHROPIC_BASE_URL: home.url, ANTHROPIC_API_KEY: '' },
      ...{ CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1', ANTHROPIC_MODEL: 'acme/large' },
      ...{ ANTHROPIC_DEFAULT_OPUS_MODEL: 'acme/large', ANTHROPIC_DEFAULT_SONNET_MODEL: 'acme/large' },
      ANTHROPIC_DEFAULT_HAIKU_MODEL: 'acme/large',
    },
  })
  expect(out + err).not.toMatch(/sk-tg-|access-/)
  expect(await home.run('connect claude --undo')).toMatchObject({ exit: 0, err: '' })
  expect(home.read('.claude/settings.json')).toBe(original)
})

test('codex gets a command for tokens', async () => {
  await using home = await openHome()
  expect((await home.run('connect codex')).exit).toBe(0)
  const profile = Bun.TOML.parse(home.read('.codex/tollgate.config.toml')) as { model_providers: unknown }
  expect(profile.model_providers).toEqual({
    tollgate: {
      ...{ name: 'Tollgate', base_url: `${home.url}/v1`, wire_api: 'responses' },
      auth: { command: program, args: ['token', home.url] },
    },
  })
  const [large] = JSON.parse(home.read('.codex/tollgate-models.json')).models
  expect([large.slug, large.context_window, large.input_modalities]).toEqual(['acme/large', 200_000, ['text', 'image']])
  expect(await home.run('connect codex --undo')).toMatchObject({ exit: 0, err: '' })
  expect(readdirSync(join(home.path, '.codex'))).toEqual([])
})

test('opencode gets a plugin that adds tokens; --key replaces it, and undo removes it', async () => {
  await using home = await openHome()
  const plugin = join(home.path, '.config/opencode/plugin/tollgate.js')
  expect((await home.run('connect opencode')).exit).toBe(0)
  const { options, models: listed } = JSON.parse(home.read('.config/opencode/opencode.json')).provider.tollgate
  expect(options).toEqual({ baseURL: `${home.url}/v1`, setCacheKey: true })
  expect(listed['acme/large']).toMatchObject({ tool_call: true, limit: { context: 200_000, output: 32_000 } })
  expect(readFileSync(plugin, 'utf8')).toContain(JSON.stringify([program, 'token', home.url]))

  const withKey = await home.run('connect opencode --key', { TOLLGATE_KEY: 'sk-tg-given', TOLLGATE_URL: home.url })
  expect([withKey.exit, existsSync(plugin)]).toEqual([0, false])
  expect(home.read('.config/opencode/opencode.json')).toContain('"apiKey": "sk-tg-given"')
  await home.run('connect opencode')
  expect(home.read('.config/opencode/opencode.json')).not.toContain('sk-tg-')
  expect(await home.run('connect opencode --undo')).toMatchObject({ exit: 0, err: '' })
  expect([existsSync(plugin), existsSync(join(home.path, '.config/opencode/opencode.json'))]).toEqual([false, false])
})

test('the plugin for opencode adds a token to its own provider, and fetches a new one after four minutes', async () => {
  await using home = await openHome()
  await home.run('connect opencode')
  const path = join(home.path, '.config/opencode/plugin/tollgate.js')
  // The command finds the sign-in by the environment of opencode, which is this process.
  const command = JSON.stringify(['/usr/bin/env', `HOME=${home.path}`, 'XDG_CONFIG_HOME=', program, 'token', home.url])
  const text = readFileSync(path, 'utf8').replace(/^const command = .*$/m, `const command = ${command}`)
  writeFileSync(path, text)
  const { Tollgate } = await import(path)
  const hooks = await Tollgate()
  const headersFor = async (providerID: string) => {
    const output = { headers: { own: '1' } }
    await hooks['chat.headers']({ model: { providerID } }, output)
    return output.headers
  }
  expect(await headersFor('other')).toEqual({ own: '1' })
  const one = { own: '1', Authorization: 'Bearer access-1' } as { own: string }
  expect(await Promise.all([headersFor('tollgate'), headersFor('tollgate')])).toEqual([one, one])
  await home.run(`login ${home.url}`)
  expect(await headersFor('tollgate')).toEqual(one)
  try {
    setSystemTime(Date.now() + 241_000)
    expect(await headersFor('tollgate')).toMatchObject({ Authorization: 'Bearer access-2' })
    setSystemTime()
    await home.run('logout')
    setSystemTime(Date.now() + 2 * 241_000)
    await expect(headersFor('tollgate')).rejects.toThrow(`Run: tollgate login ${home.url}`)
  } finally {
    setSystemTime()
  }
})

for (const client of ['gemini', 'qwen', 'goose', 'cline', 'llm']) {
  test(`${client} gets the local proxy's address and key`, async () => {
    await using home = await openHome()
    const { exit, out, err } = await home.run(`connect ${client} --port 9123`)
    const key = home.read('.config/tollgate/proxy-key').trim()
    expect([exit, key]).toEqual([0, expect.stringMatching(/^local-[\w-]{32}$/)])
    expect(out).toContain('http://127.0.0.1:9123')
    expect(out).toContain(key)
    expect(out).not.toContain(home.url)
    expect(err).toEndWith(`tollgate proxy ${home.url} --port 9123\n`)
    // The key is that of the proxy, and stays when it is connected again.
    expect((await home.run(`connect ${client}`)).out).toContain(key)
    expect(statSync(join(home.path, '.config/tollgate/proxy-key')).mode & 0o777).toBe(0o600)
    expect((await home.run(`connect ${client} --print`)).out).not.toContain(key)
  })
}

test('--gateway-login points claude’s own sign-in at the gateway, without a key or a helper, and undo restores', async () => {
  await using home = await openHome({ isSignedIn: false })
  const original = '{"apiKeyHelper": "mine", "env": {"ANTHROPIC_BASE_URL": "https://elsewhere.example"}}'
  mkdirSync(join(home.path, '.claude'))
  writeFileSync(join(home.path, '.claude/settings.json'), original)
  const args = 'connect claude --gateway-login --model acme/large'
  const { exit, out, err } = await home.run(args, { TOLLGATE_URL: home.url })
  expect([exit, err]).toEqual([0, 'Then type /login in Claude Code. No key was created.\n'])
  expect(out).not.toContain('sk-tg-')
  const { env, ...settings } = JSON.parse(home.read('.claude/settings.json'))
  expect(settings).toEqual({ forceLoginMethod: 'gateway', forceLoginGatewayUrl: home.url })
  expect(env).toMatchObject({ ANTHROPIC_MODEL: 'acme/large', ANTHROPIC_API_KEY: '' })
  expect([env.ANTHROPIC_BASE_URL, env.ANTHROPIC_AUTH_TOKEN]).toEqual([undefined, undefined])
  expect(await home.run('connect claude --undo')).toMatchObject({ exit: 0, err: '' })
  expect(home.read('.claude/settings.json')).toBe(original)
})

test('--gateway-login is refused for public addresses, without encryption, and for other clients', async () => {
  await using home = await openHome()
  const refused = async (client: string, url: string) => {
    const { exit, err } = await home.run(`connect ${client} --gateway-login`, { TOLLGATE_URL: url })
    return `${exit} ${err}`
  }
  expect(await refused('claude', 'https://192.0.2.7')).toContain(
    '1 tollgate: Claude Code signs in only at gateways with a',
  )
  expect(await refused('claude', 'http://10.0.0.7')).toContain('http://10.0.0.7 is not one')
  expect(await refused('codex', home.url)).toContain('2 tollgate: Codex CLI cannot sign in at a gateway itself.')
})

test('Cursor needs a key, because it does not run on this machine', async () => {
  await using home = await openHome()
  const { exit, err } = await home.run('connect cursor')
  expect([exit, err]).toEqual([1, expect.stringContaining('Try: tollgate connect cursor --key\n')])
})

test('without a sign-in, a key or a management token it says to sign in', async () => {
  await using home = await openHome({ isSignedIn: false })
  const env = { TOLLGATE_URL: home.url }
  const line = `tollgate: you are signed out of ${home.url}. Run: tollgate login ${home.url}\n`
  expect(await home.run('connect claude', env)).toEqual({ exit: 1, out: '', err: line })
  expect(readdirSync(home.path)).toEqual([])
})
