import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { forEachEngine } from '../../test/parts/engines.ts'
import { createId } from '../kernel/ids.ts'
import type { Role } from '../kernel/roles.ts'
import { listAudit } from './audit.ts'
import {
  mergeSettings,
  putSettingsRules,
  readSettingsRules,
  type SettingsRule,
  settingsReaderOf,
} from './managed-settings.ts'
import { addMember, insertPerson } from './people.ts'
import { createSignIn } from './sign-ins.ts'
import { insertProject, insertWorkspace } from './workspaces.ts'

const rule = (settings: object, role?: Role, group?: string) => ({ role, group, settings }) as SettingsRule

test('rules are merged in their order: objects name by name, everything else is replaced', () => {
  const rules = [
    rule({ permissions: { deny: ['WebFetch', 'Bash'], ask: ['Edit'] }, env: { A: '1' }, model: 'x' }),
    rule({ permissions: { deny: ['Bash'] }, model: null }, 'member'),
    rule({ env: { B: '2' } }, undefined, 'platform'),
    rule({ model: 'y' }, 'admin', 'platform'),
  ]
  const settingsOf = (role: Role | undefined, ...groups: string[]) => mergeSettings(rules, { role, groups })?.settings
  const base = { permissions: { deny: ['WebFetch', 'Bash'], ask: ['Edit'] }, env: { A: '1' }, model: 'x' }
  expect(settingsOf(undefined)).toEqual(base)
  expect(settingsOf('member')).toEqual({ ...base, permissions: { deny: ['Bash'], ask: ['Edit'] }, model: null })
  expect(settingsOf('viewer', 'platform')).toEqual({ ...base, env: { A: '1', B: '2' } })
  expect(settingsOf('admin', 'other')).toEqual(base)
  expect(settingsOf('admin', 'other', 'platform')).toEqual({ ...base, env: { A: '1', B: '2' }, model: 'y' })
  expect(mergeSettings(rules.slice(1), { role: 'viewer', groups: [] })).toBeUndefined()
  expect(mergeSettings([], { role: 'admin', groups: [] })).toBeUndefined()
})

test('the checksum is of the settings with sorted names and without white space', () => {
  const merged = mergeSettings([rule({ b: { d: [{ z: 1, y: 2 }], c: 'é' }, a: true })], { role: undefined, groups: [] })
  const text = '{"a":true,"b":{"c":"é","d":[{"y":2,"z":1}]}}'
  expect(merged?.checksum).toBe(`sha256:${createHash('sha256').update(text).digest('hex')}`)
})

test('a member called __proto__ is a member like any other', () => {
  const polluting = JSON.parse('{"__proto__": {"polluted": true}, "a": {"__proto__": {"polluted": true}}}')
  const merged = mergeSettings([rule({ a: { b: 1 } }), rule(polluting)], { role: undefined, groups: [] })
  expect(JSON.stringify(merged?.settings)).toBe(
    '{"a":{"b":1,"__proto__":{"polluted":true}},"__proto__":{"polluted":true}}',
  )
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
})

forEachEngine((_, storeTest) => {
  storeTest('rules are replaced as a whole, and read for the person of a key', async ({ database }) => {
    const at = Date.UTC(2026, 10, 18)
    const act = { actor: 'test', at }
    const { keyId, personId } = await database.transaction(async (sql) => {
      const workspaceId = await insertWorkspace(sql, { name: 'acme', createdAt: at })
      const projectId = await insertProject(sql, { workspaceId, name: 'web', createdAt: at })
      const personId = await insertPerson(sql, { email: 'ada@example.com', name: 'Ada' }, at)
      await addMember(sql, personId, { role: 'member', workspaceId }, 'invitation', at)
      const { keyId } = await createSignIn(sql, { personId, projectId, client: 'claude_code', device: 'x' }, at)
      return { keyId, personId }
    })
    expect(await settingsReaderOf(database.sql, { keyId })).toEqual({ role: 'member', groups: [] })
    await database.transaction((sql) => sql`UPDATE people SET idp_groups = '["dev"]' WHERE id = ${personId}`)
    expect(await settingsReaderOf(database.sql, { keyId })).toEqual({ role: 'member', groups: ['dev'] })
    expect(await settingsReaderOf(database.sql, { keyId: createId('key') })).toEqual({ role: undefined, groups: [] })

    const rules = [rule({ a: 1 }), rule({ secret: 'hush' }, 'admin', 'dev')]
    await database.transaction((sql) => putSettingsRules(sql, [rule({ old: true })], act))
    await database.transaction((sql) => putSettingsRules(sql, rules, act))
    expect(await readSettingsRules(database.sql)).toEqual({ rules, managedBy: 'api' })
    const audit = (await listAudit(database.sql, { limit: 10 })).items
    expect(audit.map(({ action, details }) => [action, details.rules])).toEqual([
      ['managed_settings.put', 2],
      ['managed_settings.put', 1],
    ])
    expect(JSON.stringify(audit)).not.toContain('hush')
    const many = Array.from({ length: 101 }, () => rule({}))
    const tooMany = database.transaction((sql) => putSettingsRules(sql, many, act))
    expect(await tooMany.catch((thrown) => thrown.code)).toBe('INVALID_REQUEST')
  })
})
