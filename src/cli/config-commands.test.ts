import { expect } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onSqlite, openWorld } from '../../test/parts/command-line.ts'
import { testWith } from '../../test/parts/engines.ts'

const declared = `workspaces:
  - name: acme
    limits: { spend_per_month: "500.00" }
    projects:
      - name: web
        models: [acme/*]
        keys:
          - { name: ci, limits: { requests_per_minute: 60 } }
          - { name: bot }
`

onSqlite((engine) => {
  const storeTest = testWith(() => openWorld(engine))

  storeTest('plans, applies and exports a file, and applies it again without a change', async (world) => {
    const file = join(world.folder, 'installation.yaml')
    writeFileSync(file, declared)
    const lines = [
      '+ workspace acme',
      '~ workspace acme: limits none → $500.00/month',
      '+ project acme/web: models acme/*',
      "+ key acme/web/ci: models its project's, limits 60 rpm",
      "+ key acme/web/bot: models its project's, limits none",
      '5 changes.',
    ]
    expect(await world.run('config plan installation.yaml')).toMatchObject({ exit: 0, out: `${lines.join('\n')}\n` })
    expect((await world.json('workspaces')).data).toEqual([])

    const applied = await world.run('config apply installation.yaml')
    expect([applied.exit, applied.err]).toEqual([0, `${lines.join('\n')}\n5 of 5 made.\n`])
    const secrets = applied.out.split('\n')
    expect(secrets[0]).toMatch(/^acme\/web\/ci\tsk-tg-[0-9A-Za-z]{34}$/)
    expect(secrets[1]).toMatch(/^acme\/web\/bot\tsk-tg-[0-9A-Za-z]{34}$/)
    const verdict = await world.management.authenticator.authenticate(
      new Headers({ 'x-api-key': secrets[0]?.split('\t')[1] ?? '' }),
    )
    expect(verdict).toMatchObject({ keyName: 'ci', projectName: 'web', workspaceName: 'acme' })

    expect(await world.run('config apply installation.yaml')).toMatchObject({
      exit: 0,
      out: '',
      err: 'Nothing to change.\n',
    })
    const exported = await world.run('config export')
    expect(exported.out).not.toContain('sk-tg')
    writeFileSync(file, exported.out)
    expect((await world.run('config plan installation.yaml')).out).toBe('Nothing to change.\n')
    expect((await world.run('config plan -', { input: declared })).out).toBe('Nothing to change.\n')
  })

  storeTest('managed settings of a file are changed by the file only, until it removes them', async (world) => {
    const file = join(world.folder, 'installation.yaml')
    writeFileSync(file, 'managed_settings: [{ role: member, settings: { permissions: { deny: [WebFetch] } } }]\n')
    const applied = await world.run('config apply installation.yaml')
    expect([applied.exit, applied.err]).toEqual([0, '~ managed settings: none → member\n1 change.\n1 of 1 made.\n'])
    expect((await world.run('config plan installation.yaml')).out).toBe('Nothing to change.\n')
    const rules = [{ role: 'member', group: null, settings: { permissions: { deny: ['WebFetch'] } } }]
    const read = async () => (await world.management.ask('GET', '/api/managed-settings')).body
    expect(await read()).toEqual({ rules, managed_by: 'file' })
    const put = () => world.management.ask('PUT', '/api/managed-settings', { body: { rules: [] } })
    const refused = await put()
    expect([refused.status, refused.body.error.message]).toEqual([
      ...[400, expect.stringContaining('This list of managed settings is managed by a file; change it there')],
    ])
    expect(await read()).toEqual({ rules, managed_by: 'file' })
    writeFileSync(file, (await world.run('config export')).out)
    expect((await world.run('config plan installation.yaml')).out).toBe('Nothing to change.\n')
    writeFileSync(file, 'managed_settings: []\n')
    expect((await world.run('config apply installation.yaml')).exit).toBe(0)
    expect([(await put()).status, await read()]).toEqual([200, { rules: [], managed_by: 'api' }])
  })

  storeTest('groups have people by address and keys by their place, and limits can name them', async (world) => {
    const { database } = world.management
    await database.transaction(async (sql) => {
      await sql`INSERT INTO people (id, email, name, created_at) VALUES ('per_1', 'ada@example.com', 'Ada', 0)`
      await sql`INSERT INTO members (id, person_id, role, source, created_at)
        VALUES ('mem_1', 'per_1', 'operator', 'invitation', 0)`
    })
    const grouped = `workspaces:
  - name: acme
    limits: { spend_limits: [{ subject: "group:design", models: acme/l*, window: 5h, limit: 10 }] }
    groups: [{ name: design, members: [web/ci, ada@example.com] }]
    projects:
      - name: web
        keys: [{ name: ci }]
`
    const lines = [
      '+ workspace acme',
      '+ project acme/web: models all',
      "+ key acme/web/ci: models its project's, limits none",
      '+ group acme/design: ada@example.com, web/ci',
      '~ workspace acme: limits none → group:design acme/l* $10.00/5h',
      '5 changes.',
    ]
    const file = join(world.folder, 'installation.yaml')
    writeFileSync(file, grouped)
    expect((await world.run('config plan installation.yaml')).out).toBe(`${lines.join('\n')}\n`)
    const applied = await world.run('config apply installation.yaml')
    expect([applied.exit, applied.err]).toEqual([0, `${lines.join('\n')}\n5 of 5 made.\n`])
    expect((await world.run('config plan installation.yaml')).out).toBe('Nothing to change.\n')
    writeFileSync(file, (await world.run('config export')).out)
    expect((await world.run('config plan installation.yaml')).out).toBe('Nothing to change.\n')

    expect((await world.run('groups add design --members key_1')).err).toContain('is managed by a file')
    writeFileSync(file, grouped.replace('[web/ci, ada@example.com]', '[ada@example.com]'))
    expect((await world.run('config apply installation.yaml')).err).toStartWith(
      '~ group acme/design: members ada@example.com, web/ci → ada@example.com\n1 change.',
    )
    writeFileSync(file, grouped.replace(/ {4}(limits|groups): .*\n/g, ''))
    expect((await world.run('config apply installation.yaml --prune')).err).toStartWith(
      '~ workspace acme: limits group:design acme/l* $10.00/5h → none\n- group acme/design: deleted\n2 changes.',
    )
  })

  storeTest('objects of a file are changed by the file only, and revoked only with --prune', async (world) => {
    const file = join(world.folder, 'installation.yaml')
    writeFileSync(file, declared)
    const { keys } = await world.json('config apply installation.yaml')
    const [ci, bot] = keys
    expect([ci.place, bot.place]).toEqual(['acme/web/ci', 'acme/web/bot'])
    for (const command of [`keys revoke ${ci.id}`, `limits put ${ci.id} --rpm 5`, 'projects update --all-models']) {
      const ran = await world.run(command)
      expect([command, ran.exit]).toEqual([command, 2])
      expect(ran.err).toContain('is managed by a file; change it there and run `tollgate config apply FILE`')
    }
    expect((await world.run(`keys rotate ${ci.id}`)).exit).toBe(0)
    expect((await world.json('keys')).data.map((key: { managed_by: string }) => key.managed_by)).toEqual([
      'file',
      'file',
    ])

    writeFileSync(file, declared.replace('          - { name: bot }\n', '').replace('acme/*', 'acme/large'))
    const kept = await world.run('config apply installation.yaml')
    expect(kept.err).toBe(
      '~ project acme/web: models acme/* → acme/large\n  left as it is: key acme/web/bot (revoked with --prune)\n1 change.\n1 of 1 made.\n',
    )
    const pruned = await world.run('config apply installation.yaml --prune')
    expect(pruned.err).toBe('- key acme/web/bot: revoked\n1 change.\n1 of 1 made.\n')
    const states = (await world.json('keys')).data.map((key: { status: string }) => key.status)
    expect(states).toEqual(['active', 'revoked'])
  })

  storeTest('changes nothing for a wrong file or impossible changes', async (world) => {
    const file = join(world.folder, 'installation.yaml')
    writeFileSync(file, 'workspaces:\n  - name: acme\n    projekts: []\n')
    const wrong = await world.run('config apply installation.yaml')
    expect(wrong.exit).toBe(2)
    expect(wrong.err).toContain('installation.yaml:3:5  workspaces[0].projekts  unknown key "projekts"; did you mean')
    expect((await world.run('config apply nowhere.yaml')).exit).toBe(4)
    writeFileSync(file, declared)
    expect((await world.run('config apply installation.yaml')).exit).toBe(0)
    writeFileSync(file, declared.replace('{ name: bot }', '{ name: bot, models: [acme/large] }').replace('500', '600'))
    const impossible = await world.run('config apply installation.yaml')
    expect([impossible.exit, impossible.out]).toEqual([1, ''])
    expect(impossible.err).toContain('key acme/web/bot: models of a key cannot be changed')
    expect((await world.json('workspaces')).data[0].limits).toEqual({ spend_per_month: '500.00' })
  })

  storeTest('finds a running gateway despite a wrong file, and warns about the file', async (world) => {
    const env = { TOLLGATE_URL: '', TOLLGATE_PORT: new URL(world.management.url).port }
    const file = join(world.folder, 'tollgate.yaml')
    writeFileSync(file, 'models: all\n')
    const asked = await world.run('workspaces --json', { env })
    expect([asked.exit, JSON.parse(asked.out).data]).toEqual([0, []])
    expect(asked.err).toContain(
      'the configuration is wrong. A running gateway keeps the last good one; looking for it at',
    )
    expect(asked.err).toContain('tollgate.yaml:1:9  models  expected a list')
    // The gateway has its key from where it was started; that this shell has not is nothing to tell.
    const entry = "{ id: acme, dialect: openai-chat, base_url: 'http://127.0.0.1:1/v1', api_key: '$KEY' }"
    writeFileSync(file, `providers: [${entry.replace('$KEY', '$' + '{ACME_KEY}')}]\n`)
    expect(await world.run('workspaces --json', { env })).toMatchObject({ exit: 0, err: '' })
  })

  storeTest('shows each setting with its source, and no secret', async (world) => {
    writeFileSync(
      join(world.folder, 'tollgate.yaml'),
      'server:\n  port: 9000\n  drain_seconds: 5\nlimits:\n  requests_per_minute: 600\nproviders:\n  - { id: acme, dialect: openai-chat, base_url: http://127.0.0.1:1/v1, api_key: canary-in-the-file }\n',
    )
    const env = { TOLLGATE_PORT: '9001', OPENAI_API_KEY: 'canary-in-the-environment', TOLLGATE_SECRET: 'c'.repeat(64) }
    const shown = await world.run('config show --json', { env })
    expect(shown.exit).toBe(0)
    const settings = new Map(JSON.parse(shown.out).data.map((each: { name: string }) => [each.name, each]))
    const expected: readonly (readonly [name: string, value: string, source: string])[] = [
      ['server.port', '9001', 'TOLLGATE_PORT'],
      ['server.drain_seconds', '5', 'tollgate.yaml:3'],
      ['server.host', '127.0.0.1', 'default'],
      ['limits.requests_per_minute', '600', 'tollgate.yaml:5'],
      ['limits.tokens_per_minute', 'unlimited', 'default'],
      ['OPENAI_API_KEY', 'set', 'OPENAI_API_KEY'],
      ['TOLLGATE_SECRET', 'set', 'TOLLGATE_SECRET'],
      ['providers.acme', 'openai-chat, http://127.0.0.1:1/v1, key set', 'tollgate.yaml:7'],
    ]
    for (const [name, value, source] of expected) expect(settings.get(name)).toEqual({ name, value, source })
    const table = await world.run('config', { env })
    expect(table.out).toMatch(/^SETTING +VALUE +FROM\n/)
    expect(table.err).toContain('As a gateway started here and now would read them.')
    // The running gateway answers, whatever the environment of this terminal says.
    const running = await world.run('config show --running')
    expect([running.exit, running.err]).toEqual([0, ''])
    expect(running.out).toMatch(/^SETTING +VALUE +FROM\n/)
    expect(await world.json('config show --running')).toEqual({
      data: [{ name: 'server.port', value: '8080', source: 'default' }],
    })
    for (const { out, err } of [shown, table]) expect(out + err).not.toMatch(/canary|cccc|token-of-the-operator/)
  })

  storeTest('lists providers with what they need, and adds one to the file without its key', async (world) => {
    const file = join(world.folder, 'tollgate.yaml')
    writeFileSync(file, '# mine\nserver: { local_models: off }   # quiet\n')
    const env = { OPENAI_API_KEY: 'canary' }
    const byId = async () => {
      const { data } = await world.json('providers', { env })
      return new Map<string, object>(data.map((each: { id: string }) => [each.id, each]))
    }
    const before = await byId()
    expect(before.get('openai')).toMatchObject({ state: 'on', needs: [], key_from: 'OPENAI_API_KEY' })
    expect(before.get('anthropic')).toMatchObject({ state: 'off', needs: ['ANTHROPIC_API_KEY'] })
    expect(before.get('sandbox')).toMatchObject({ state: 'on', models: 10 })

    expect((await world.run('providers add acme', { env })).exit).toBe(2)
    const added = await world.run('providers add acme --base-url https://api.acme.example/v1', { env })
    expect(added.exit).toBe(0)
    expect(added.out).toContain('from line 3:\n+ providers:\n+   - id: acme\n')
    expect(added.err).toContain('ACME_API_KEY is not set here')
    expect(readFileSync(file, 'utf8')).toBe(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as the file has it
      '# mine\nserver: { local_models: off }   # quiet\nproviders:\n  - id: acme\n    dialect: openai-chat\n    base_url: https://api.acme.example/v1\n    api_key: ${ACME_API_KEY}\n',
    )
    const again = { env: { ...env, ACME_API_KEY: 'canary' } }
    expect((await world.run('providers add acme --base-url https://x.example/v1', again)).exit).toBe(2)
    const wrong = await world.run('providers add beta --base-url beta.example --no-key', again)
    expect([wrong.exit, wrong.err]).toEqual([2, expect.stringContaining('must start with http:// or https://')])
    expect(readFileSync(file, 'utf8')).not.toContain('beta')
    const { data } = await world.json('providers', again)
    expect(JSON.stringify(data)).not.toContain('canary')
    expect(data).toContainEqual(expect.objectContaining({ id: 'acme', state: 'on', key_from: 'tollgate.yaml:4' }))
  })
})
