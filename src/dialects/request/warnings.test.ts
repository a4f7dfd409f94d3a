import { expect, test } from 'bun:test'
import { paramOf, pointerStep, WarningList } from './fields.ts'

test('lists each code and field name once, with its first pointer', () => {
  const warnings = new WarningList()
  warnings.add('cache_control_dropped', '/messages/0/content/1/cache_control')
  warnings.add('cache_control_dropped', '/messages/7/cache_control')
  warnings.add('other', '/messages/7/cache_control')
  warnings.add('system_inlined', '/messages/3')
  warnings.add('system_inlined', '/messages/5')
  expect(warnings.list).toEqual([
    { code: 'cache_control_dropped', field: '/messages/0/content/1/cache_control' },
    { code: 'other', field: '/messages/7/cache_control' },
    { code: 'system_inlined', field: '/messages/3' },
  ])
})

test('lists every dropped cache mark, further ones after all other warnings', () => {
  const warnings = new WarningList()
  for (const pointer of ['/tools/0/cache_control', '/messages/1/content/0/cache_control', '/tools/0/cache_control']) {
    warnings.add('cache_mark_dropped', pointer)
  }
  warnings.add('name_dropped', '/messages/0/name')
  const merged = new WarningList()
  merged.addAll(warnings.list)
  merged.addAll(warnings.list)
  for (const { list } of [warnings, merged]) {
    expect(list).toEqual([
      { code: 'cache_mark_dropped', field: '/tools/0/cache_control' },
      { code: 'name_dropped', field: '/messages/0/name' },
      { code: 'cache_mark_dropped', field: '/messages/1/content/0/cache_control' },
    ])
  }
})

test('pointers escape what would part them, and read as callers write paths', () => {
  expect(pointerStep('a/b~c')).toBe('/a~1b~0c')
  expect(paramOf(`/tools/0${pointerStep('a/b')}/x`)).toBe('tools[0].a/b.x')
  expect(paramOf('')).toBe('')
})
