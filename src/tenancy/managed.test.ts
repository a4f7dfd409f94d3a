import { expect, test } from 'bun:test'
import { forEachEngine } from '../../test/parts/engines.ts'
import { Failure } from '../kernel/failure.ts'
import { createVerifier } from './api-key.ts'
import type { Act } from './audit.ts'
import { createKey, getKey, revokeKey, rotateKey } from './keys.ts'
import { putLimits } from './limits.ts'
import { createProject, getProject, updateProject } from './projects.ts'
import { createWorkspace, getWorkspace, updateWorkspace } from './workspaces.ts'

const noon = Date.UTC(2026, 10, 8, 12)
const byFile = { actor: 'management token', at: noon, managedBy: 'file' } as const
const byHand = { actor: 'management token', at: noon }
const verifier = createVerifier(new Uint8Array(32))

function good<T>(value: T | Failure | 'not found'): T {
  if (value === 'not found' || value instanceof Failure) throw new Error('was not made')
  return value as T
}

forEachEngine((engine) => {
  test('what a file made, nobody else changes; the file does', async () => {
    await using store = await engine.openStore()
    const { database } = store
    const made = await database.transaction(async (sql) => {
      const workspace = good(await createWorkspace(sql, { name: 'acme' }, byFile))
      const project = good(await createProject(sql, { workspaceId: workspace.id, name: 'web' }, byFile))
      const { key } = good(await createKey(sql, { projectId: project.id, name: 'ci' }, byFile, verifier))
      return { workspace, project, key }
    })
    const { workspace, project, key } = made
    expect([workspace.managedBy, project.managedBy, key.managedBy]).toEqual(['file', 'file', 'file'])
    const changes = (act: Act) => [
      database.transaction((sql) => updateWorkspace(sql, workspace.id, { name: 'other' }, act)),
      database.transaction((sql) => updateProject(sql, project.id, { models: ['acme/*'] }, act)),
      database.transaction((sql) => putLimits(sql, 'workspace', workspace.id, { requestsPerMinute: 1 }, act)),
      database.transaction((sql) => putLimits(sql, 'project', project.id, { requestsPerMinute: 2 }, act)),
      database.transaction((sql) => putLimits(sql, 'key', key.id, { requestsPerMinute: 3 }, act)),
      database.transaction((sql) => revokeKey(sql, key.id, act)),
    ]
    const kinds = ['workspace', 'project', 'workspace', 'project', 'key', 'key']
    const refused = await Promise.all(changes(byHand))
    refused.forEach((outcome, at) => {
      expect(outcome).toBeInstanceOf(Failure)
      const { code, message } = outcome as Failure
      expect(code).toBe('INVALID_REQUEST')
      expect(message).toStartWith(`This ${kinds[at]} is managed by a file; change it there`)
    })
    expect(await getWorkspace(database.sql, workspace.id)).toEqual(workspace)
    expect(await getProject(database.sql, project.id)).toEqual(project)
    expect(await getKey(database.sql, key.id)).toEqual(key)

    for (const outcome of await Promise.all(changes(byFile))) expect(outcome).not.toBeInstanceOf(Failure)
    expect(await getProject(database.sql, project.id)).toMatchObject({ models: ['acme/*'], managedBy: 'file' })
  })

  test("a leaked secret of a file's key can be ended by anybody: files say nothing about secrets", async () => {
    await using store = await engine.openStore()
    const rotated = await store.database.transaction(async (sql) => {
      const workspace = good(await createWorkspace(sql, { name: 'acme' }, byFile))
      const project = good(await createProject(sql, { workspaceId: workspace.id, name: 'web' }, byFile))
      const { key } = good(await createKey(sql, { projectId: project.id, name: 'ci' }, byFile, verifier))
      return await rotateKey(sql, key.id, {}, byHand, verifier)
    })
    expect(good(rotated).key.managedBy).toBe('file')
  })

  test('what was made by hand, a file may change, and it stays in the hands it was in', async () => {
    await using store = await engine.openStore()
    const changed = await store.database.transaction(async (sql) => {
      const workspace = good(await createWorkspace(sql, { name: 'acme' }, byHand))
      const project = good(await createProject(sql, { workspaceId: workspace.id, name: 'web' }, byHand))
      return good(await updateProject(sql, project.id, { models: ['acme/*'] }, byFile))
    })
    expect(changed).toMatchObject({ models: ['acme/*'], managedBy: 'api' })
  })
})
