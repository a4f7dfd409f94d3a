// Loaded into the gateway by memory.ts. On SIGUSR2 it collects the heap of the main thread and prints what is left of it.

import { heapStats } from 'bun:jsc'

process.on('SIGUSR2', () => {
  Bun.gc(true)
  const { heapSize, objectCount } = heapStats()
  console.log(JSON.stringify({ heapSize, objectCount }))
})
