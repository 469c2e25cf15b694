// What it costs to scroll.
//
// Scrolls the page, or a part of it, from its top to its end, a step a frame. Returns the longest time between two
// frames, and the processor time that the page's own thread took for one, from a trace: the latter does not depend on
// what else the machine does. In milliseconds.
export async function scrolls(page, part = 'html', frames = 120) {
  const traced = await page.context().newCDPSession(page)
  const events = []
  traced.on('Tracing.dataCollected', ({ value }) => events.push(...value))
  await traced.send('Tracing.start', {
    transferMode: 'ReportEvents',
    categories: 'toplevel,disabled-by-default-devtools.timeline'
  })
  const longest = await page.evaluate(
    ([part, frames]) =>
      new Promise((resolve) => {
        const box = document.querySelector(part)
        const step = (box.scrollHeight - box.clientHeight) / frames
        let longest = 0
        let before = 0
        let drawn = 0
        box.scrollTop = 0
        const onFrame = (now) => {
          if (before) longest = Math.max(longest, now - before)
          before = now
          box.scrollTop += step
          if (++drawn < frames) requestAnimationFrame(onFrame)
          else resolve(Math.round(longest))
        }
        requestAnimationFrame(onFrame)
      }),
    [part, frames]
  )
  const ended = new Promise((resolve) => traced.once('Tracing.tracingComplete', resolve))
  await traced.send('Tracing.end')
  await ended
  await traced.detach()
  const isMain = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`)
  )
  const tasks = events
    .filter(({ name, pid, tid }) => /RunTask$/.test(name) && isMain.has(`${pid} ${tid}`))
    .map(({ tdur = 0 }) => tdur / 1000)
  return { longest, longestTask: Math.max(0, ...tasks), perFrame: tasks.reduce((sum, ms) => sum + ms, 0) / frames }
}
