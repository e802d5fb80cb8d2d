-- For `make docs`, which makes HTML and man pages of the Markdown with pandoc: links to a page of Markdown lead to what is made
-- of it, the first heading is the title, and in a man page the section NAME.
local function text_of(block)
  return (pandoc.utils.stringify(block):gsub("%s+", " "))
end

function Link(link)
  if FORMAT ~= "man" and not link.target:match("^%a+:") then
    link.target = link.target:gsub("%.md$", ".html"):gsub("%.md#", ".html#")
  end
  return link
end

local function man(doc)
  local title, blocks, said = "", {}, false
  for i, block in ipairs(doc.blocks) do
    if block.t == "Header" and block.level == 1 and not said then
      -- The heading of a name's page is the name: what it did stands below.
      title = #block.content == 1 and block.content[1].t == "Code" and text_of(doc.blocks[i + 1]) or text_of(block)
      blocks[#blocks + 1] = pandoc.Header(1, "NAME")
      blocks[#blocks + 1] = pandoc.Plain(text_of(pandoc.Inlines(doc.meta.title)) .. " - " .. title:gsub("%.$", ""))
      blocks[#blocks + 1] = pandoc.Header(1, "DESCRIPTION")
      said = true
    elseif block.t == "Header" then
      blocks[#blocks + 1] = pandoc.Header(math.max(block.level - 1, 1), block.content)
    elseif block.t ~= "RawBlock" then
      blocks[#blocks + 1] = block
    end
  end
  doc.blocks = blocks
  return doc
end

function Pandoc(doc)
  if FORMAT == "man" then
    return man(doc)
  end
  for _, block in ipairs(doc.blocks) do
    if block.t == "Header" then
      doc.meta.pagetitle = text_of(block)
      break
    end
  end
  return doc
end
