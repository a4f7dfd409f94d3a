import { expect } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onSqlite, openWorld } from '../../test/parts/command-line.ts'
import { testWith } from '../../test/parts/engines.ts'

onSqlite((engine) => {
  const storeTest = testWith(() => openWorld(engine))

  storeTest('connect claude creates a key, writes it for this user only, and undo restores the file', async (world) => {
    const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
    await world.management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    const file = join(world.folder, 'home', '.claude', 'settings.json')
    const original = '{ "model": "opus",\n  "env": { "FOO": "1" } }'
    mkdirSync(join(world.folder, 'home', '.claude'), { recursive: true })
    writeFileSync(file, original)
    const shown = await world.run('connect claude --print')
    expect(JSON.parse(shown.out).env).toMatchObject({
      ANTHROPIC_BASE_URL: world.management.url,
      ANTHROPIC_AUTH_TOKEN: 'sk-tg-…',
      ANTHROPIC_MODEL: 'acme/large',
    })
    expect([readFileSync(file, 'utf8'), (await world.json('keys')).data]).toEqual([original, []])
    const written = await world.run('connect claude --model acme/small')
    expect([written.exit, written.out]).toEqual([0, expect.stringContaining('connect claude --undo')])
    // Members that were absent and stay absent are no change.
    expect(written.out).toContain('  env.ANTHROPIC_AUTH_TOKEN\n')
    expect(written.out).not.toContain('forceLogin')
    expect(written.out + written.err).not.toMatch(/sk-tg-[A-Za-z0-9]/)
    const settings = JSON.parse(readFileSync(file, 'utf8'))
    expect(settings).toMatchObject({ model: 'opus', env: { FOO: '1', ANTHROPIC_MODEL: 'acme/small' } })
    const [key] = (await world.json('keys')).data
    expect(settings.env.ANTHROPIC_AUTH_TOKEN).toMatch(new RegExp(`^sk-tg-.*${key.last4}$`))
    expect(key.name).toStartWith('claude on ')
    expect(written.err).toBe(`Created key "${key.name}": ${key.id}\n`)
    const again = await world.run('connect claude --workspace acme')
    const [, second] = (await world.json('keys')).data
    expect(again.err).toBe(
      `Created key "${key.name}": ${second.id}\n` +
        `Created earlier with this name and still active: "${key.name}" ${key.id}. To revoke it: tollgate keys revoke ${key.id}\n`,
    )
    await world.run(`keys revoke ${key.id}`)
    const undone = await world.run('connect claude --undo')
    const advice = `Still active: "${key.name}" ${second.id}. To revoke it: tollgate keys revoke ${second.id}\n`
    expect([undone.exit, undone.err]).toEqual([0, advice])
    expect(readFileSync(file, 'utf8')).toBe(original)
    expect((await world.run('connect claude --undo')).exit).toBe(4)
  })

  storeTest('undo does not suggest revoking a key that connect was given', async (world) => {
    const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
    await world.management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    const secret = (await world.run('keys create --name mine')).out.trim()
    await world.run('connect claude', { env: { TOLLGATE_KEY: secret } })
    const [mine] = (await world.json('keys')).data
    const undone = await world.run('connect claude --undo')
    expect([undone.exit, undone.err]).toEqual([
      0,
      `The key "mine" ${mine.id} came from TOLLGATE_KEY and stays active.\n`,
    ])
  })

  storeTest('with several workspaces, the suggestion of connect works', async (world) => {
    for (const name of ['acme', 'beta']) {
      const { id } = await world.management.make('/api/workspaces', { name })
      await world.management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    }
    const refused = await world.run('connect claude')
    const attempt = /Try: (--workspace ws_\S+)\n/.exec(refused.err)?.[1]
    expect([refused.exit, (await world.run(`connect claude ${attempt}`)).exit]).toEqual([2, 0])
  })

  storeTest('connect gives Codex a profile and a list of models, and --undo deletes both', async (world) => {
    const folder = join(world.folder, 'codex')
    const env = { CODEX_HOME: folder, TOLLGATE_KEY: 'sk-tg-given' }
    const shown = await world.run('connect codex --print', { env })
    expect(shown.out).toContain('experimental_bearer_token = "sk-tg-…"')
    expect(existsSync(folder)).toBe(false)

    const written = await world.run('connect codex --model acme/small', { env })
    expect([written.exit, written.out]).toEqual([0, expect.stringContaining('codex --profile tollgate')])
    const profile = readFileSync(join(folder, 'tollgate.config.toml'), 'utf8')
    expect(Bun.TOML.parse(profile)).toEqual({
      model: 'acme/small',
      model_provider: 'tollgate',
      model_catalog_json: join(folder, 'tollgate-models.json'),
      model_providers: {
        tollgate: {
          name: 'Tollgate',
          base_url: `${world.management.url}/v1`,
          wire_api: 'responses',
          experimental_bearer_token: 'sk-tg-given',
        },
      },
    })
    const { models } = JSON.parse(readFileSync(join(folder, 'tollgate-models.json'), 'utf8'))
    expect(models.map(({ slug }: { slug: string }) => slug)).toEqual(['acme/large', 'acme/small', 'beta/open'])
    expect(models[0]).toMatchObject({ context_window: 200_000, apply_patch_tool_type: 'freeform' })

    expect((await world.run('connect codex --undo', { env })).exit).toBe(0)
    expect(readdirSync(folder)).toEqual([])
    expect((await world.run('connect codex --undo', { env })).err).toContain('there is nothing to undo')
    mkdirSync(join(folder, '.git'))
    expect((await world.run('connect codex', { env })).err).toContain('a key must not be committed')
    expect(readdirSync(folder)).toEqual(['.git'])
  })

  storeTest(
    'connect writes no key into a repository, prints settings for Cursor, and lists models for opencode',
    async (world) => {
      mkdirSync(join(world.folder, 'home', '.git'), { recursive: true })
      const env = { TOLLGATE_KEY: 'sk-tg-given' }
      const refused = await world.run('connect claude', { env })
      expect(refused.exit).toBe(1)
      expect(refused.err).toContain('a key must not be committed')
      expect(refused.out).toContain('"ANTHROPIC_AUTH_TOKEN": "sk-tg-…"')
      expect((await world.run('connect cursor', { env })).out).toContain('Override OpenAI Base URL')
      expect((await world.run('connect cline --model acme/smal')).err).toContain('Try: --model acme/small')
      const elsewhere = { ...env, XDG_CONFIG_HOME: join(world.folder, 'config') }
      expect((await world.run('connect opencode', { env: elsewhere })).exit).toBe(0)
      const written = JSON.parse(readFileSync(join(world.folder, 'config', 'opencode', 'opencode.json'), 'utf8'))
      expect(written.provider.tollgate.options).toEqual({
        ...{ baseURL: `${world.management.url}/v1`, apiKey: 'sk-tg-given', setCacheKey: true },
      })
      // A model without a price cannot be called.
      expect(Object.keys(written.provider.tollgate.models)).toEqual(['acme/large', 'acme/small', 'beta/open'])
      expect(written.provider.tollgate.models['acme/large']).toMatchObject({
        name: 'Acme Large',
        limit: { context: 200_000, output: 32_000 },
      })
    },
  )

  for (const [client, file] of [
    ['continue', join('.continue', 'tollgate.yaml')],
    ['aider', join('.config', 'aider', 'tollgate.yml')],
  ] as const) {
    storeTest(`connect ${client} writes new files, and --undo deletes them`, async (world) => {
      const env = { TOLLGATE_KEY: 'sk-tg-given' }
      const path = join(world.folder, 'home', file)
      const written = await world.run(`connect ${client} --model acme/small`, { env })
      expect([written.exit, written.out]).toEqual([0, expect.stringContaining(`connect ${client} --undo`)])
      const text = readFileSync(path, 'utf8')
      for (const part of ['sk-tg-given', 'acme/small', `${world.management.url}/v1`]) expect(text).toContain(part)
      expect((await world.run(`connect ${client} --undo`, { env })).exit).toBe(0)
      expect(existsSync(path)).toBe(false)
    })
  }

  storeTest('connect zed writes models without the key, and leaves a file with comments alone', async (world) => {
    const env = { TOLLGATE_KEY: 'sk-tg-given', XDG_CONFIG_HOME: join(world.folder, 'config') }
    const file = join(world.folder, 'config', 'zed', 'settings.json')
    expect((await world.run('connect zed', { env })).exit).toBe(0)
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain('sk-tg-')
    const { api_url: url, available_models: models } = JSON.parse(text).language_models.openai_compatible.Tollgate
    expect([url, models[0].name, models[0].max_tokens]).toEqual([`${world.management.url}/v1`, 'acme/large', 200_000])
    expect((await world.run('connect zed --undo', { env })).exit).toBe(0)
    expect(existsSync(file)).toBe(false)
    writeFileSync(file, '// mine\n{}\n')
    expect((await world.run('connect zed', { env })).err).toContain('not plain JSON')
    expect(readFileSync(file, 'utf8')).toBe('// mine\n{}\n')
  })

  storeTest(
    'connect gemini sets the type of authentication, prints the variables, and undo keeps a later choice',
    async (world) => {
      const env = { TOLLGATE_KEY: 'sk-tg-given' }
      const file = join(world.folder, 'home', '.gemini', 'settings.json')
      const original = '{"security": {"auth": {"selectedType": "oauth-personal"}}, "ui": {"theme": "GitHub"}}'
      mkdirSync(join(world.folder, 'home', '.gemini'), { recursive: true })
      writeFileSync(file, original)
      const written = await world.run('connect gemini --model acme/small', { env })
      expect(written.out).toContain(
        `  export GOOGLE_GEMINI_BASE_URL=${world.management.url}\n  export GEMINI_API_KEY=sk-tg-given\n`,
      )
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
        security: { auth: { selectedType: 'gemini-api-key' } },
        ui: { theme: 'GitHub' },
      })
      expect((await world.run('connect gemini --undo', { env })).exit).toBe(0)
      expect(readFileSync(file, 'utf8')).toBe(original)
      await world.run('connect gemini', { env })
      const later = '{"security": {"auth": {"selectedType": "vertex-ai"}}, "ui": {"theme": "GitHub"}}'
      writeFileSync(file, later)
      expect((await world.run('connect gemini --undo', { env })).exit).toBe(0)
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(later))
    },
  )

  for (const client of ['cline', 'qwen', 'goose', 'llm']) {
    storeTest(`connect ${client} prints address, key and model`, async (world) => {
      const env = { TOLLGATE_KEY: 'sk-tg-given' }
      const { exit, out } = await world.run(`connect ${client} --model acme/small`, { env })
      expect(exit).toBe(0)
      for (const part of ['sk-tg-given', 'acme/small', world.management.url]) expect(out).toContain(part)
    })
  }
})
